"""Render a report as tables with rich."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from rich.console import Group
from rich.table import Table
from rich.text import Text

from benchmarks.figures import SUMMARY_SHARES
from benchmarks.markdown import met

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from rich.console import RenderableType

    from benchmarks.report import BenchmarkReport, Json

_STYLES = {True: "green", False: "red", None: "yellow"}
# Longer texts are examples, which are shown only in the file.
_LONGEST = 200
# Columns of the table that compares systems, by the name of the figure.
_COMPARED = {"facts": "facts", **SUMMARY_SHARES, "chars": "chars"}
# Columns of the comparison with what people wrote about supplied conversations.
_OF_PEOPLE = {
    "entities_due": "names and numbers",
    "entities_of_summaries": "told",
    "first_third": "first third",
    "second_third": "second",
    "last_third": "last",
    "questions": "questions",
    "answer_words_in_injected": "answer's words told",
}
_COUNTS = frozenset({"facts", "chars", "entities_due", "questions"})


def render_report(report: BenchmarkReport) -> RenderableType:
    """Return the whole report: comparisons, figures, targets, remarks."""
    machine = report.machine
    head = Text(
        f"{report.bench}: {machine.cpu}, {machine.cores} cores, {machine.memory_gb:g} GB, Python {machine.python}, "
        f"load {machine.load_1m:g}"
    )
    parts: list[RenderableType] = [head, *_comparisons(report)]
    for side, entries in (("ours", report.ours), ("peers", report.peers)):
        parts += [_figures(f"{name} ({side})", entry) for name, entry in entries.items() if not _is_contender(entry)]
    parts.append(_targets(report))
    parts += [Text(f"- {remark}") for remark in report.remarks]
    return Group(*parts)


def _targets(report: BenchmarkReport) -> Table:
    table = _table("Targets", "target", "goal", "measured", "", "of")
    for target in report.targets:
        word = met(asdict(target)).strip("*")
        style = _STYLES[target.met]
        table.add_row(target.name, target.goal, _cell(target.value), Text(word, style=style), target.sample)
    return table


def _comparisons(report: BenchmarkReport) -> Iterator[Table]:
    """Yield one table for each set of conversations: what each system kept after how many folds."""
    contenders = {**report.ours, **report.peers}
    names = dict.fromkeys(name for entry in contenders.values() for name in _sets_of(entry))
    for name in names:
        table = _table(name, "who", "folds", *_COMPARED.values(), "invented", "too long", "s a fold", justify="right")
        for contender, entry in contenders.items():
            figures = _sets_of(entry).get(name)
            if figures is not None:
                _add_contender(table, contender, figures)
        yield table
        if any(_people_of(entry, name) for entry in contenders.values()):
            yield _people(name, contenders)


def _people(name: str, contenders: Mapping[str, Json]) -> Table:
    """Return the comparison with what people wrote about these conversations."""
    table = _table(f"{name}, by what people wrote", "who", *_OF_PEOPLE.values(), justify="right")
    for contender, entry in contenders.items():
        if figures := _people_of(entry, name):
            table.add_row(contender, *(_share(figure, figures.get(figure)) for figure in _OF_PEOPLE))
    return table


def _people_of(entry: Json, name: str) -> Mapping[str, Json]:
    of_set = entry.get(name) if isinstance(entry, dict) else None
    figures = of_set.get("people") if isinstance(of_set, dict) else None
    return figures if isinstance(figures, dict) else {}


def _add_contender(table: Table, contender: str, figures: Mapping[str, Json]) -> None:
    after = figures.get("after_folds")
    rows = list(after.items()) if isinstance(after, dict) else []
    for number, (folds, at) in enumerate(rows):
        cells = [_share(name, at.get(name)) if isinstance(at, dict) else "-" for name in _COMPARED]
        last = number == len(rows) - 1
        table.add_row(contender if number == 0 else "", folds, *cells, *(_course_cells(figures) if last else ()))


def _course_cells(figures: Mapping[str, Json]) -> tuple[str, str, str]:
    """Return the totals over all folds: inventions, overlong summaries, seconds for a fold."""
    invented = [figures.get(name) for name in ("invented_names", "invented_numbers")]
    cost = figures.get("cost")
    seconds = cost.get("fold_p50_s") if isinstance(cost, dict) else None
    return (
        " + ".join(str(len(each)) for each in invented if isinstance(each, list)),
        _cell(figures.get("summaries_over_1200_chars")),
        _cell(seconds),
    )


def _sets_of(entry: Json) -> dict[str, dict[str, Json]]:
    """Return the sets of conversations in a system's figures, or an empty dictionary for other figures."""
    if not isinstance(entry, dict):
        return {}
    return {name: value for name, value in entry.items() if isinstance(value, dict) and "after_folds" in value}


def _is_contender(entry: Json) -> bool:
    """Return whether an entry is shown in the comparisons."""
    sets = entry.values() if isinstance(entry, dict) else ()
    return any(isinstance(each, dict) and ("after_folds" in each or each.keys() == {"people"}) for each in sets)


def _figures(title: str, entry: Json) -> Table:
    table = _table(title, "figure", "value", header=False)
    if isinstance(entry, dict):
        for path, value in _flat(entry):
            table.add_row(path, value)
    else:
        table.add_row("value", _cell(entry))
    return table


def _flat(entry: Mapping[str, Json], path: str = "") -> Iterable[tuple[str, str]]:
    """Yield every figure with its path. A dictionary of plain values is one line; a list of dictionaries is one line
    for each.
    """
    plain = {name: value for name, value in entry.items() if not isinstance(value, dict) and not _is_rows(value)}
    if plain:
        shown = ", ".join(f"{name} {_cell(value)}" for name, value in plain.items() if not _is_prose(value))
        yield path.strip(" /") or "figures", shown
    for name, value in entry.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{path} / {name}")
        elif _is_rows(value) and isinstance(value, list):
            for row in value:
                if isinstance(row, dict):
                    yield from _flat(row, f"{path} / {name}")


def _is_rows(value: Json) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(each, dict) for each in value)


def _is_prose(value: Json) -> bool:
    return isinstance(value, str) and len(value) > _LONGEST


def _table(title: str, *columns: str, justify: str = "left", header: bool = True) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False, show_header=header)
    for number, column in enumerate(columns):
        table.add_column(column, justify="right" if justify == "right" and number > 0 else "left")
    return table


def _share(name: str, value: Json) -> str:
    if name in _COUNTS or not isinstance(value, int | float):
        return _cell(value)
    return f"{value:.0%}"


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
