"""The few results that the README shows, for people who decide whether to try Roomtone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from benchmarks.report import Json

# Systems reach the end of a conversation after more folds than this.
_FOLDS_BEFORE_THE_END = 20
# The result with a strong model's recorded answers, and the systems in it, with the names that readers see.
RECORDED = "memory.json"
ANSWERED = {
    "roomtone, recorded answers": "Roomtone",
    "langchain, recorded answers": "LangChain's summarising middleware",
    "pipecat, recorded answers": "Pipecat's context summarisation",
    "recursive, recorded answers": "one paragraph, rewritten each time",
    "extractive": "Roomtone without a language model",
    "last 50 turns": "the last 50 turns",
}


@dataclass(frozen=True, slots=True)
class Headline:
    """A benchmark's target in plain words. `form`: the format of its value. `sample`: where the result has how many
    there were, and `of`: of what; not needed where the target says it.
    """

    bench: str
    target: str
    words: str
    form: str
    sample: tuple[str, ...] = ()
    of: str = ""


HEADLINES = (
    Headline(
        "reply",
        "end of speech to first voiced sound, P50 ms",
        "End of a question to the first sound of the answer, median (without the language model's time)",
        "{:,.0f} ms",
    ),
    Headline("reply", "end of speech to first voiced sound, P95 ms", "The same, 95th percentile", "{:,.0f} ms"),
    Headline(
        "reply",
        "silent after the overlap qualified, P95 ms",
        "Time to fall silent once somebody has spoken over it for 0.7 s, 95th percentile",
        "{:.0f} ms",
        ("interruptions", "silent_after_ms", "count"),
        "interruptions",
    ),
    Headline(
        "reply",
        "answered of what was for it, held-out talks",
        "Share of the questions addressed to it that it answers",
        "{:.1%}",
        ("deciding", "held_out", "owed"),
        "questions",
    ),
    Headline(
        "reply",
        "unwanted answers in 10 minutes of company, held-out talks",
        "Unasked replies in 10 minutes of scripted talk full of traps",
        "{:.1f} times",
        ("deciding", "held_out", "minutes_of_company"),
        "minutes",
    ),
    Headline(
        "unasked",
        "spoken unasked in real talk among people, whole turns",
        "Unasked replies in real talk among people (transcripts of meetings and table-top games)",
        "{:.0f} times",
    ),
    Headline(
        "memory",
        "memory search over 100,000 turns, P95 ms",
        "Finding a sentence among 100,000, 95th percentile",
        "{:.0f} ms",
        ("search_speed_with_embeddings", "queries"),
        "searches",
    ),
)


def headlines(results: Mapping[str, Mapping[str, Json]]) -> list[str]:
    """Return the lines of two tables: the headline figures, and how many facts each system's summary kept."""
    rows = [row for head in HEADLINES if (row := _row(head, results)) is not None]
    return [*("|  | measured | of |", "|---|---|---|", *rows, ""), *_kept_table(results)]


def _kept_table(results: Mapping[str, Mapping[str, Json]]) -> list[str]:
    """Return the table of the facts that summaries still have, with recorded answers; nothing without such a result."""
    recorded = results.get(RECORDED, {})
    answered = [row for who, name in ANSWERED.items() for row in _kept(recorded, who, name, "written")]
    if not answered:
        return []
    talk = "two conversations of 313 turns, at their end"
    head = f"| of all facts of {talk}, with a strong model's answers | the summary (1,200 characters) has |"
    return [head, "|---|---|", *answered, *_remembered(recorded), ""]


def _remembered(report: Mapping[str, Json]) -> Iterator[str]:
    """Yield the row of what Roomtone has in its summary or finds after a thousand turns."""
    entry: Json = report.get("ours")
    for step in ("roomtone, recorded answers", "written, long", "lasting", "100"):
        entry = entry.get(step) if isinstance(entry, dict) else None
    if not isinstance(entry, dict):
        return
    told, found, facts = entry.get("told"), entry.get("found_of_rest"), entry.get("facts")
    if isinstance(told, int | float) and isinstance(facts, int):
        share = told + (1 - told) * (found if isinstance(found, int | float) else 0.0)
        asked = "what people ask for weeks later, after 1,000 turns, in the summary or among ten search results"
        yield f"| Roomtone: {asked} | {share:.0%} of {facts} |"


def _row(head: Headline, results: Mapping[str, Mapping[str, Json]]) -> str | None:
    """Return the row of one figure with its sample, or None if it was not measured."""
    report = results.get(f"{head.bench}.json", {})
    targets = report.get("targets")
    for target in targets if isinstance(targets, list) else ():
        if isinstance(target, dict) and target.get("name") == head.target:
            value = target.get("value")
            if not isinstance(value, int | float):
                return None
            sample = target.get("sample") or _sample(head, report)
            return f"| {head.words} | {head.form.format(value)} | {sample} |"
    return None


def _sample(head: Headline, report: Mapping[str, Json]) -> str:
    count: Json = report.get("ours")
    for step in head.sample:
        count = count.get(step) if isinstance(count, dict) else None
    return f"{count:,.0f} {head.of}" if isinstance(count, int | float) else ""


def _kept(report: Mapping[str, Json], who: str, name: str, of_set: str) -> Iterator[str]:
    """Yield the row of one system if it was measured at the end of each conversation, after 22 to 26 folds."""
    for side in ("ours", "peers"):
        entry: Json = report.get(side)
        for step in (who, of_set, "after_folds"):
            entry = entry.get(step) if isinstance(entry, dict) else None
        after = entry if isinstance(entry, dict) else {}
        kept = facts = 0.0
        for at in [key for key in after if int(key) > _FOLDS_BEFORE_THE_END]:
            figures = after[at]
            assert isinstance(figures, dict), "figures by folds"
            share, count = figures.get("kept"), figures.get("facts")
            if isinstance(share, int | float) and isinstance(count, int):
                kept, facts = kept + share * count, facts + count
        if facts:
            yield f"| {name} | {kept / facts:.0%} of {facts:.0f} |"
