"""A report for people: tables of figures and the targets, as rich draws them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rich.console import RenderableType

    from benchmarks.report import Json, Report

_MARKS = {True: ("met", "green"), False: ("not met", "red"), None: ("not measured", "yellow")}


def report_view(report: Report) -> RenderableType:
    """Return the whole report: contenders, measurements, targets, remarks."""
    machine = report.machine
    head = Text(
        f"{report.bench}: {machine.cpu}, {machine.cores} cores, {machine.memory_gb:g} GB, Python {machine.python}, "
        f"load {machine.load_1m:g}"
    )
    parts: list[RenderableType] = [head]
    for side, entries in (("ours", report.ours), ("peers", report.peers)):
        parts += _tables(side, entries)
    parts.append(_targets(report))
    parts += [Text(f"- {remark}") for remark in report.remarks]
    return Group(*parts)


def _targets(report: Report) -> Table:
    table = Table(title="Targets", title_justify="left", box=None, pad_edge=False)
    for heading in ("target", "goal", "measured", ""):
        table.add_column(heading)
    for target in report.targets:
        word, style = _MARKS[target.met]
        table.add_row(target.name, target.goal, _cell(target.value), Text(word, style=style))
    return table


def _tables(side: str, entries: Mapping[str, Json]) -> Iterable[Table]:
    for name, entry in entries.items():
        if not isinstance(entry, dict):
            continue
        table = Table(title=f"{name} ({side})", title_justify="left", box=None, pad_edge=False, show_header=False)
        table.add_column("figure")
        table.add_column("value")
        for path, value in _flat(entry):
            table.add_row(path, value)
        yield table


def _flat(entry: Mapping[str, Json], path: str = "") -> Iterable[tuple[str, str]]:
    """Yield every figure with its path; a dictionary of plain values is one line."""
    plain = {name: value for name, value in entry.items() if not isinstance(value, dict)}
    if plain:
        shown = ", ".join(f"{name} {_cell(value)}" for name, value in plain.items() if not _is_prose(value))
        yield path.strip(" /") or "figures", shown
    for name, value in entry.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{path} / {name}")


def _is_prose(value: Json) -> bool:
    return isinstance(value, str) and len(value) > 200


def _cell(value: Json) -> str:
    match value:
        case None:
            return "-"
        case bool():
            return "yes" if value else "no"
        case float():
            return f"{value:g}"
        case list():
            return "[" + ", ".join(_cell(each) for each in value) + "]"
        case _:
            return str(value)
