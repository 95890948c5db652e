"""Write the stored results into docs/benchmarks.md, docs/cluster.md and the README: `python -m benchmarks.document`.

The part between the two marks is generated from the JSON files in docs/benchmarks/, which `roomtone bench` wrote. No
figure in that part is typed by hand.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.cluster.sizing import sizing_table
from benchmarks.cluster.tables import FAULT_HEAD, ROOM_HEAD, fault_rows, room_rows
from benchmarks.headlines import headlines
from benchmarks.memory.targets import OF_SUMMARIES, made_summaries
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
_MET = {True: "met", False: "**not met**", None: "not measured"}
_NOT_MEASURED: dict[str, Json] = {"value": "not measured", "met": None}
_SHARES = {
    "kept": "kept",
    "stale": "stale",
    "speaker_right": "speaker right",
    "entities": "entities",
    "in_segments": "in segments",
    "small_talk": "small talk",
}
_OF_PEOPLE = ("entities_of_summaries", "first_third", "second_third", "last_third")


def update_page(page: str, results: Mapping[str, Mapping[str, Json]]) -> str:
    """Return the page with these results (by file name) between its marks. Raises ValueError if a mark is missing."""
    told = _told_targets(results)
    lines = [
        *_voice_goals(results),
        *_not_met(told),
        *(
            line
            for name in sorted(results)
            for line in _result(name, results[name], list(with_kept_apart(name, told[name], results)))
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
        (*_target(target), _cell(target.get("sample", "")), f"`{file.removesuffix('.json')}`")
        for file, target in voice_goals(results)
    ]
    if rows:
        yield "### Hearing and answering"
        yield ""
        yield "What should be reached on two cores, and what was; the files below say how it was measured."
        yield ""
        yield from _table(("target", "goal", "measured", "", "of", "benchmark"), rows)
        yield from _speech(results)


def _speech(results: Mapping[str, Mapping[str, Json]]) -> Iterator[str]:
    """Yield the tables of what the goals for hearing and answering compare, if any of it was kept."""
    if rows := list(speech_rows(results)):
        yield "What these goals compare, read recordings and free talk (of synthetic voices, see above) told apart:"
        yield ""
        yield from _table(SPEECH_HEAD, rows)
    if rows := list(crowd_rows(results)):
        yield from _table(CROWD_HEAD, rows)


def _not_met(told: Mapping[str, Sequence[Mapping[str, Json]]]) -> Iterator[str]:
    """Yield the table of every target that the kept results miss."""
    rows = [
        (*_target(target)[:3], _cell(target.get("sample", "")), f"`{file.removesuffix('.json')}`")
        for file, targets in told.items()
        for target in (said_as(file, each) for each in targets)
        if target["met"] is False
    ]
    if rows:
        yield "### What is not met"
        yield ""
        yield from _table(("target", "goal", "measured", "of", "file"), rows)


def _told_targets(results: Mapping[str, Mapping[str, Json]]) -> dict[str, list[dict[str, Json]]]:
    """Return the targets of each file. One that was not measured is told once, and only if no other file of the same
    benchmark has measured it: most of these files are parts of one benchmark.
    """
    listed = {name: _targets(results[name]) for name in sorted(results)}
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


def _targets(report: Mapping[str, Json]) -> list[dict[str, Json]]:
    targets = report.get("targets")
    found = [each for each in targets if isinstance(each, dict)] if isinstance(targets, list) else []
    return [{**each, **_NOT_MEASURED} if _is_empty_claim(each, report) else each for each in found]


def _is_empty_claim(target: Mapping[str, Json], report: Mapping[str, Json]) -> bool:
    """Return whether a run met a target about summaries without making one, as runs of parts of the memory benchmark
    said until they were told not to.
    """
    of_summaries = report.get("bench") == "memory" and target["name"] in OF_SUMMARIES
    return of_summaries and not made_summaries(_entry(report, "ours"))


def _result(name: str, report: Mapping[str, Json], rows: Sequence[Mapping[str, Json]]) -> Iterator[str]:
    machine = _entry(report, "machine")
    yield f"### {name}"
    yield ""
    yield (
        f"[All figures](benchmarks/{name}). {_cell(machine.get('cpu'))}, {_cell(machine.get('cores'))} cores, "
        f"{_cell(machine.get('memory_gb'))} GB, Python {_cell(machine.get('python'))}; "
        f"load of the machine at the start {_cell(machine.get('load_1m'))}."
    )
    yield ""
    samples = any(each.get("sample") for each in rows)
    yield from _table(
        ("target", "goal", "measured", "", *(("of",) if samples else ())),
        ((*_target(each), *((_cell(each.get("sample", "")),) if samples else ())) for each in rows),
    )
    yield from _comparisons({**_entry(report, "ours"), **_entry(report, "peers")})
    yield from _people({**_entry(report, "ours"), **_entry(report, "peers")})
    yield from _answers(report)
    yield from _pools(report)
    yield from _rooms(report)
    remarks = report.get("remarks")
    if isinstance(remarks, list) and remarks:
        yield from (f"- {_cell(remark)}" for remark in remarks)
        yield ""


def _target(target: Mapping[str, Json]) -> tuple[str, ...]:
    return (*(_cell(target[each]) for each in ("name", "goal", "value")), _met(target["met"]))


def _comparisons(entries: Mapping[str, Json]) -> Iterator[str]:
    """Yield one table for each set of conversations: what each system had kept after how many folds."""
    names = dict.fromkeys(
        name
        for entry in entries.values()
        if isinstance(entry, dict)
        for name, figures in entry.items()
        if isinstance(figures, dict) and "after_folds" in figures
    )
    for name in names:
        rows = [
            row
            for who, entry in entries.items()
            if isinstance(entry, dict)
            for row in _contender(who, _entry(entry, name), _cell(_entry(entry, name).get("version") or ""))
        ]
        yield f"Evenings of the set `{name}`:" if name in {"tuning", "held_out"} else f"Conversations of {name}:"
        yield ""
        yield from _table(("who", "folds", "facts", *_SHARES.values(), "invented", "s a fold"), rows)


def _people(entries: Mapping[str, Json]) -> Iterator[str]:
    """Yield one table for each set: the share of the names and numbers of people's summaries, by thirds too."""
    sets = dict.fromkeys(name for entry in entries.values() if isinstance(entry, dict) for name in entry)
    for name in sets:
        found = {
            who: _entry(_entry(entry, name), "people") for who, entry in entries.items() if isinstance(entry, dict)
        }
        rows = [
            (who, _cell(figures.get("entities_due")), *(_share(figures.get(each)) for each in _OF_PEOPLE))
            for who, figures in found.items()
            if "first_third" in figures
        ]
        if rows:
            yield f"Names and numbers of what people wrote about {name}:"
            yield ""
            yield from _table(("who", "names and numbers", "told", "first third", "second", "last"), rows)


def _answers(report: Mapping[str, Json]) -> Iterator[str]:
    """Yield the table of the bot's answers beside those of other pipelines, if any was measured."""
    entries = _entry(report, "peers")
    peers = {who: figures for who in entries if "total_ms" in (figures := _entry(entries, who))}
    if not peers:
        return
    rows = [
        (
            f"{who} ({_cell(figures['version'])})" if "version" in figures else who,
            _cell(figures.get("recordings")),
            *(_cell(_entry(figures, "total_ms").get(each)) for each in ("p50", "p95")),
            f"{_cell(figures.get('pauses_cut'))} of {_cell(figures.get('pauses_inside'))}",
            _cell(figures.get("unanswered")),
            _cell(figures.get("cpu_s_an_answer")),
        )
        for who, figures in {"Roomtone": _entry(_entry(report, "ours"), "answers"), **peers}.items()
    ]
    yield "Answers, one recording after the other:"
    yield ""
    times = ("end of speech to first voiced sound, P50 ms", "P95 ms")
    yield from _table(("who", "recordings", *times, "pauses cut", "answers missing", "CPU s an answer"), rows)


def _pools(report: Mapping[str, Json]) -> Iterator[str]:
    """Yield the table of what pools of recognisers did, if any was measured."""
    rows = [
        (
            name,
            *(_cell(_entry(figures, "utterance_ms").get(each)) for each in ("p50", "p95")),
            *(_cell(figures.get(each)) for each in ("speech_s_a_s", "recognisers_cpu_s_a_speech_s")),
            _cell(figures.get("whole_cluster_cpu_s_a_speech_s")),
        )
        for name, figures in _entry(report, "ours").items()
        if isinstance(figures, dict) and "speech_s_a_s" in figures
    ]
    if rows:
        yield "Several people at once, each the next sentence as soon as the text of the one before is there:"
        yield ""
        times = ("an utterance, P50 ms", "P95 ms", "seconds of speech a second")
        yield from _table(("pool", *times, "CPU s of recognisers a second of speech", "of the whole cluster"), rows)


def _rooms(report: Mapping[str, Json]) -> Iterator[str]:
    """Yield the tables of rooms in processes: what they take, and what faults did to them."""
    if rows := list(room_rows(report)):
        yield "Rooms in processes, and a machine that hands its rooms over (each seen once):"
        yield ""
        yield from _table(ROOM_HEAD, rows)
    if rows := list(fault_rows(report)):
        yield "The rooms that lost their process, one time for each of them:"
        yield ""
        yield from _table(FAULT_HEAD, rows)


def _contender(who: str, figures: Mapping[str, Json], version: str) -> Iterator[tuple[str, ...]]:
    invented = [figures.get(each) for each in ("invented_names", "invented_numbers")]
    counted = sum(len(each) for each in invented if isinstance(each, list))
    seconds = _cell(_entry(figures, "cost").get("fold_p50_s"))
    after = _entry(figures, "after_folds")
    for number, (folds, at) in enumerate(after.items()):
        found = at if isinstance(at, dict) else {}
        last = number == len(after) - 1
        yield (
            (f"{who} ({version})" if version else who) if number == 0 else "",
            folds,
            _cell(found.get("facts")),
            *(_share(found.get(each)) for each in _SHARES),
            str(counted) if last else "",
            seconds if last else "",
        )


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> Iterator[str]:
    columns = tuple(head)
    yield f"| {' | '.join(columns)} |"
    yield f"|{'---|' * len(columns)}"
    yield from (f"| {' | '.join(row)} |" for row in rows)
    yield ""


def _entry(report: Mapping[str, Json], name: str) -> dict[str, Json]:
    entry = report.get(name)
    return entry if isinstance(entry, dict) else {}


def _met(value: Json) -> str:
    return _MET[value if isinstance(value, bool) else None]


def _share(value: Json) -> str:
    return f"{value:.0%}" if isinstance(value, int | float) else "-"


def _cell(value: Json) -> str:
    if value is None:
        return "-"
    if not isinstance(value, float):
        return str(value)
    # Show three significant digits, and never scientific notation.
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


if __name__ == "__main__":
    PAGE.write_text(update_page(PAGE.read_text("utf-8"), kept_results()), "utf-8")
    CLUSTER.write_text(update_cluster(CLUSTER.read_text("utf-8"), kept_results()), "utf-8")
    README.write_text(update_readme(README.read_text("utf-8"), kept_results()), "utf-8")
