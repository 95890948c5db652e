"""Writes Markdown tables of the figures in a stored result."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from benchmarks.report import Json

_MET = {True: "met", False: "**not met**", None: "not measured"}


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> Iterator[str]:
    """Yield the lines of a table, and an empty one."""
    columns = tuple(head)
    yield f"| {' | '.join(columns)} |"
    yield f"|{'---|' * len(columns)}"
    yield from (f"| {' | '.join(row)} |" for row in rows)
    yield ""


def met(value: Json) -> str:
    """Return whether a target is met, in words."""
    return _MET[value if isinstance(value, bool) else None]


def share(value: Json) -> str:
    """Return a share, like 46%."""
    return f"{value:.0%}" if isinstance(value, int | float) else "-"


def cell(value: Json) -> str:
    """Return a figure with three significant digits; a hyphen if there is none."""
    if value is None:
        return "-"
    if not isinstance(value, float):
        return str(value)
    # Never scientific notation.
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def target_row(target: Mapping[str, Json]) -> tuple[str, ...]:
    """Return the first cells of a target's row: what, the goal, what was measured, and whether that is enough."""
    return (*(cell(target[each]) for each in ("name", "goal", "value")), met(target["met"]))
