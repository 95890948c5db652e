"""Write the stored results into docs/benchmarks.md, docs/cluster.md and the README: `python -m benchmarks.document`.

The part between the two marks is generated from the JSON files in docs/benchmarks/, which `roomtone bench` wrote. No
figure in that part is typed by hand.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.cluster.sizing import sizing_table
from benchmarks.headlines import headlines
from benchmarks.markdown import cell, is_undecided, table, target_row
from benchmarks.result_section import result_section
from benchmarks.speech_table import CROWD_HEAD, crowd_rows, speech_rows
from benchmarks.speech_table import HEAD as SPEECH_HEAD
from benchmarks.voice_goals import said_as, voice_goals, with_kept_apart

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from benchmarks.report import Json

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
README = ROOT / "README.md"
PAGE = DOCS / "benchmarks.md"
CLUSTER = DOCS / "cluster.md"
RESULTS = DOCS / "benchmarks"
BEGIN = "<!-- kept results: made by `python -m benchmarks.document` -->"
END = "<!-- end of the kept results -->"


def update_page(page: str, results: Mapping[str, Mapping[str, Json]]) -> str:
    """Return the page with these results (by file name) between its marks. Raises ValueError if a mark is missing."""
    told = _told_targets(results)
    lines = [
        *_voice_goals(results),
        *_not_met(told),
        *(
            line
            for name in _in_order(results)
            for line in result_section(name, results[name], list(with_kept_apart(name, told[name], results)))
        ),
    ]
    return _between_marks(page, lines)


def update_readme(page: str, results: Mapping[str, Mapping[str, Json]]) -> str:
    """Return the README with its few headline figures from the results. Raises ValueError if a mark is missing."""
    return _between_marks(page, headlines(results))


def update_cluster(page: str, results: Mapping[str, Mapping[str, Json]]) -> str:
    """Return docs/cluster.md with its sizes from the results. Raises ValueError if a mark is missing."""
    return _between_marks(page, sizing_table(results.get("cluster.json", {})))


def _between_marks(page: str, lines: Sequence[str]) -> str:
    head, begin, rest = page.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"The page lacks {BEGIN} or {END}.")
    return "\n".join([f"{head}{BEGIN}", "", *lines, f"{END}{tail}"])


def kept_results(folder: Path = RESULTS) -> dict[str, dict[str, Json]]:
    """Return the stored results by file name."""
    return {path.name: json.loads(path.read_text("utf-8")) for path in sorted(folder.glob("*.json"))}


def _voice_goals(results: Mapping[str, Mapping[str, Json]]) -> Iterator[str]:
    """Yield the table of what hearing and answering should reach, if any of it was kept."""
    rows = [
        (*target_row(target), cell(target.get("sample", "")), f"`{file.removesuffix('.json')}`")
        for file, target in voice_goals(results)
    ]
    if rows:
        yield "### Hearing and answering"
        yield ""
        yield "What should be reached on two cores, and what was; the files below say how it was measured."
        yield ""
        yield from table(("target", "goal", "measured", "", "of", "benchmark"), rows)
        yield from _speech(results)


def _speech(results: Mapping[str, Mapping[str, Json]]) -> Iterator[str]:
    """Yield the tables of what the goals for hearing and answering compare, if any of it was kept."""
    if rows := list(speech_rows(results)):
        yield "What these goals compare, read recordings and free talk (of synthetic voices, see above) told apart:"
        yield ""
        yield from table(SPEECH_HEAD, rows)
    if rows := list(crowd_rows(results)):
        yield from table(CROWD_HEAD, rows)


def _not_met(told: Mapping[str, Sequence[Mapping[str, Json]]]) -> Iterator[str]:
    """Yield the table of every target that the kept results miss, or do not decide."""
    rows = [
        (*target_row(target), cell(target.get("sample", "")), f"`{file.removesuffix('.json')}`")
        for file, targets in told.items()
        for target in (said_as(file, each) for each in targets)
        if target["met"] is False or is_undecided(target)
    ]
    if rows:
        yield "### What is not met"
        yield ""
        yield from table(("target", "goal", "measured", "", "of", "file"), rows)


def _told_targets(results: Mapping[str, Mapping[str, Json]]) -> dict[str, list[dict[str, Json]]]:
    """Return the targets of each file. One that was not measured is told once, and only if no other file of the same
    benchmark has measured it: most of these files are parts of one benchmark.
    """
    listed = {name: _targets(results[name]) for name in _in_order(results)}
    told = {
        (results[name].get("bench", name), target["name"])
        for name, targets in listed.items()
        for target in targets
        if target["met"] is not None
    }
    kept: dict[str, list[dict[str, Json]]] = {name: [] for name in listed}
    for name, targets in listed.items():
        for target in targets:
            known = (results[name].get("bench", name), target["name"])
            if target["met"] is not None or known not in told:
                told.add(known)
                kept[name].append(target)
    return kept


def _in_order(names: Iterable[str]) -> list[str]:
    """Return the names of files in order: a benchmark's own file is before those of its parts."""
    return sorted(names, key=lambda name: name.removesuffix(".json"))


def _targets(report: Mapping[str, Json]) -> list[dict[str, Json]]:
    targets = report.get("targets")
    return [each for each in targets if isinstance(each, dict)] if isinstance(targets, list) else []


if __name__ == "__main__":
    PAGE.write_text(update_page(PAGE.read_text("utf-8"), kept_results()), "utf-8")
    CLUSTER.write_text(update_cluster(CLUSTER.read_text("utf-8"), kept_results()), "utf-8")
    README.write_text(update_readme(README.read_text("utf-8"), kept_results()), "utf-8")
