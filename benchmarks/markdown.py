"""Writes Markdown tables of the figures in a stored result."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from benchmarks.report import Json


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> Iterator[str]:
    """Yield the lines of a table, and an empty one."""
    columns = tuple(head)
    yield f"| {' | '.join(columns)} |"
    yield f"|{'---|' * len(columns)}"
    yield from (f"| {' | '.join(row)} |" for row in rows)
    yield ""


def met(target: Mapping[str, Json]) -> str:
    """Return whether a target is met, in words."""
    match target["met"]:
        case True:
            return "met"
        case False:
            return "**not met**"
        case _:
            return "not decided" if is_undecided(target) else "not measured"


def is_undecided(target: Mapping[str, Json]) -> bool:
    """Return whether a target was measured, but not well enough to tell whether it is met."""
    return target["met"] is None and isinstance(target["value"], int | float)


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
    return (*(cell(target[each]) for each in ("name", "goal", "value")), met(target))
