"""Writes what one stored result tells, in Markdown: its machine, targets, comparisons and remarks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.cluster.tables import FAULT_HEAD, ROOM_HEAD, fault_rows, room_rows
from benchmarks.figures import SUMMARY_SHARES, entry_of
from benchmarks.markdown import cell, share, table, target_row

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from benchmarks.report import Json

_OF_PEOPLE = ("entities_of_summaries", "first_third", "second_third", "last_third")


def result_section(name: str, report: Mapping[str, Json], rows: Sequence[Mapping[str, Json]]) -> Iterator[str]:
    """Yield the section of the file `name`. `rows`: the targets to tell."""
    machine = entry_of(report, "machine")
    yield f"### {name}"
    yield ""
    yield (
        f"[All figures](benchmarks/{name}). {cell(machine.get('cpu'))}, {cell(machine.get('cores'))} cores, "
        f"{cell(machine.get('memory_gb'))} GB, Python {cell(machine.get('python'))}; "
        f"load of the machine at the start {cell(machine.get('load_1m'))}."
    )
    yield ""
    samples = any(each.get("sample") for each in rows)
    yield from table(
        ("target", "goal", "measured", "", *(("of",) if samples else ())),
        ((*target_row(each), *((cell(each.get("sample", "")),) if samples else ())) for each in rows),
    )
    yield from _comparisons({**entry_of(report, "ours"), **entry_of(report, "peers")})
    yield from _people({**entry_of(report, "ours"), **entry_of(report, "peers")})
    yield from _answers(report)
    yield from _pools(report)
    yield from _rooms(report)
    remarks = report.get("remarks")
    if isinstance(remarks, list) and remarks:
        yield from (f"- {cell(remark)}" for remark in remarks)
        yield ""


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
            for row in _contender(who, entry_of(entry, name), cell(entry_of(entry, name).get("version") or ""))
        ]
        yield f"Evenings of the set `{name}`:" if name in {"tuning", "held_out"} else f"Conversations of {name}:"
        yield ""
        yield from table(("who", "folds", "facts", *SUMMARY_SHARES.values(), "invented", "s a fold"), rows)


def _people(entries: Mapping[str, Json]) -> Iterator[str]:
    """Yield one table for each set: the share of the names and numbers of people's summaries, by thirds too."""
    sets = dict.fromkeys(name for entry in entries.values() if isinstance(entry, dict) for name in entry)
    for name in sets:
        found = {
            who: entry_of(entry_of(entry, name), "people") for who, entry in entries.items() if isinstance(entry, dict)
        }
        rows = [
            (who, cell(figures.get("entities_due")), *(share(figures.get(each)) for each in _OF_PEOPLE))
            for who, figures in found.items()
            if "first_third" in figures
        ]
        if rows:
            yield f"Names and numbers of what people wrote about {name}:"
            yield ""
            yield from table(("who", "names and numbers", "told", "first third", "second", "last"), rows)


def _answers(report: Mapping[str, Json]) -> Iterator[str]:
    """Yield the table of the bot's answers beside those of other pipelines, if any was measured."""
    entries = entry_of(report, "peers")
    peers = {who: figures for who in entries if "total_ms" in (figures := entry_of(entries, who))}
    if not peers:
        return
    rows = [
        (
            f"{who} ({cell(figures['version'])})" if "version" in figures else who,
            cell(figures.get("recordings")),
            *(cell(entry_of(figures, "total_ms").get(each)) for each in ("p50", "p95")),
            f"{cell(figures.get('pauses_cut'))} of {cell(figures.get('pauses_inside'))}",
            cell(figures.get("unanswered")),
            cell(figures.get("cpu_s_an_answer")),
        )
        for who, figures in {"Roomtone": entry_of(entry_of(report, "ours"), "answers"), **peers}.items()
    ]
    yield "Answers, one recording after the other:"
    yield ""
    times = ("end of speech to first voiced sound, P50 ms", "P95 ms")
    yield from table(("who", "recordings", *times, "pauses cut", "answers missing", "CPU s an answer"), rows)


def _pools(report: Mapping[str, Json]) -> Iterator[str]:
    """Yield the table of what pools of recognisers did, if any was measured."""
    rows = [
        (
            name,
            *(cell(entry_of(figures, "utterance_ms").get(each)) for each in ("p50", "p95")),
            *(cell(figures.get(each)) for each in ("speech_s_a_s", "recognisers_cpu_s_a_speech_s")),
            cell(figures.get("whole_cluster_cpu_s_a_speech_s")),
        )
        for name, figures in entry_of(report, "ours").items()
        if isinstance(figures, dict) and "speech_s_a_s" in figures
    ]
    if rows:
        yield "Several people at once, each the next sentence as soon as the text of the one before is there:"
        yield ""
        times = ("an utterance, P50 ms", "P95 ms", "seconds of speech a second")
        yield from table(("pool", *times, "CPU s of recognisers a second of speech", "of the whole cluster"), rows)


def _rooms(report: Mapping[str, Json]) -> Iterator[str]:
    """Yield the tables of rooms in processes: what they take, and what faults did to them."""
    if rows := list(room_rows(report)):
        yield "Rooms in processes, and a machine that hands its rooms over (each seen once):"
        yield ""
        yield from table(ROOM_HEAD, rows)
    if rows := list(fault_rows(report)):
        yield "The rooms that lost their process, one time for each of them:"
        yield ""
        yield from table(FAULT_HEAD, rows)


def _contender(who: str, figures: Mapping[str, Json], version: str) -> Iterator[tuple[str, ...]]:
    invented = [figures.get(each) for each in ("invented_names", "invented_numbers")]
    counted = sum(len(each) for each in invented if isinstance(each, list))
    seconds = cell(entry_of(figures, "cost").get("fold_p50_s"))
    after = entry_of(figures, "after_folds")
    for number, (folds, at) in enumerate(after.items()):
        found = at if isinstance(at, dict) else {}
        last = number == len(after) - 1
        yield (
            (f"{who} ({version})" if version else who) if number == 0 else "",
            folds,
            cell(found.get("facts")),
            *(share(found.get(each)) for each in SUMMARY_SHARES),
            str(counted) if last else "",
            seconds if last else "",
        )
