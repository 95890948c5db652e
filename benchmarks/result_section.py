"""Writes what one stored result tells, in Markdown: its machine, targets, remarks, and the tables of its parts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.figures import entry_of
from benchmarks.markdown import cell, table, target_row
from benchmarks.memory.tables import barge_in_table, people_tables, search_tables, summary_tables

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from benchmarks.report import Json


def result_section(name: str, report: Mapping[str, Json], rows: Sequence[Mapping[str, Json]]) -> Iterator[str]:
    """Yield the section of the file `name`. `rows`: the targets to tell. Parts have headings if there are several."""
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
    remarks = report.get("remarks")
    if isinstance(remarks, list) and remarks:
        yield from (f"- {cell(remark)}" for remark in remarks)
        yield ""
    parts = [(title, lines) for title, part in _PARTS if (lines := list(part(report)))]
    for title, lines in parts:
        if len(parts) > 1:
            yield f"#### {title}"
            yield ""
        yield from lines


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
            *(cell(entry_of(figures, "total_ms").get(each)) for each in ("p50", "mean", "p95")),
            f"{cell(figures.get('pauses_cut'))} of {cell(figures.get('pauses_inside'))}",
            cell(figures.get("unanswered")),
            cell(figures.get("cpu_s_an_answer")),
        )
        for who, figures in {"Roomtone": entry_of(entry_of(report, "ours"), "answers"), **peers}.items()
    ]
    yield "Answers, one recording after the other:"
    yield ""
    times = ("end of speech to first voiced sound, P50 ms", "mean ms", "P95 ms")
    yield from table(("who", "recordings", *times, "pauses cut", "answers missing", "CPU s an answer"), rows)


def _pools(report: Mapping[str, Json]) -> Iterator[str]:
    """Yield the table of what recognisers did together, if any was measured."""
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
        yield from table(("service", *times, "CPU s of recognisers a second of speech", "of the whole cluster"), rows)


def _faults(report: Mapping[str, Json]) -> Iterator[str]:
    """Yield the table of what faults did to rooms, one row for each time."""
    rows = []
    for name, tries in entry_of(report, "ours").items():
        for outcome in tries if isinstance(tries, list) else ():
            if isinstance(outcome, dict) and "hears_after_s" in outcome:
                times = (_listed(outcome.get(each)) for each in ("hears_after_s", "missing_s"))
                lost = outcome.get("sentences_lost")
                told = "; ".join(str(each) for each in lost) if isinstance(lost, list) else ""
                rows.append((name, *times, told or "none"))
    if rows:
        yield "What each fault did, one time for each row, with the times of all rooms that it concerned:"
        yield ""
        yield from table(("fault", "hears again after, s", "speech that is not stored, s", "lost sentences"), rows)


def _listed(values: Json) -> str:
    listed = values if isinstance(values, list) else []
    return ", ".join(f"{each:.1f}" for each in listed if isinstance(each, int | float))


# What a result may have besides its targets.
_PARTS: tuple[tuple[str, Callable[[Mapping[str, Json]], Iterator[str]]], ...] = (
    ("Memory search", search_tables),
    ("Constant interruptions", barge_in_table),
    ("What summaries keep", summary_tables),
    ("Beside what people wrote", people_tables),
    ("Answers", _answers),
    ("Recognisers", _pools),
    ("Faults", _faults),
)
