"""The few results that the README shows, for people who decide whether to try Roomtone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from benchmarks.report import Json

# The systems in the README's table of kept facts, in this order, with the names that readers see.
CONTENDERS = {
    "ledger": "Roomtone",
    "langchain": "LangChain's summarising middleware",
    "pipecat": "Pipecat's context summarisation",
    "recursive": "one paragraph, rewritten each time",
    "last 50 turns": "the last 50 turns",
}
FOLDS = "20"


@dataclass(frozen=True, slots=True)
class Headline:
    """A benchmark's target in plain words. `form`: the format of its value."""

    bench: str
    target: str
    words: str
    form: str


HEADLINES = (
    Headline(
        "reply",
        "end of speech to first voiced sound, P50 ms",
        "End of a question to the first sound of the answer, median (without the language model's time)",
        "{:.0f} ms",
    ),
    Headline("reply", "end of speech to first voiced sound, P95 ms", "The same, 95th percentile", "{:,.0f} ms"),
    Headline(
        "reply",
        "silent after the overlap qualified, P95 ms",
        "Time to fall silent after an interruption, 95th percentile",
        "{:.0f} ms",
    ),
    Headline(
        "reply",
        "answered of what was for it, held-out talks",
        "Share of the questions addressed to it that it answers",
        "{:.1%}",
    ),
    Headline(
        "reply",
        "unwanted answers in 10 minutes of company, held-out talks",
        "Unasked replies in 10 minutes of people talking",
        "{:.1f} times",
    ),
    Headline(
        "memory",
        "memory search over 100,000 turns, P95 ms",
        "Finding a sentence among 100,000, 95th percentile",
        "{:.0f} ms",
    ),
)


def headlines(results: Mapping[str, Mapping[str, Json]]) -> list[str]:
    """Return the lines of two tables: the headline figures, and how many facts each system's summary kept."""
    rows = [f"| {head.words} | {value} |" for head in HEADLINES if (value := _value(head, results)) is not None]
    kept = [f"| {CONTENDERS[who]} | {share:.0%} of {count} |" for who, share, count in _kept(results)]
    return [
        *("|  | measured |", "|---|---|", *rows, ""),
        *(
            f"| of the facts planted in {FOLDS}0 turns that were folded away | the summary still has |",
            "|---|---|",
            *kept,
            "",
        ),
    ]


def _value(head: Headline, results: Mapping[str, Mapping[str, Json]]) -> str | None:
    targets = results.get(f"{head.bench}.json", {}).get("targets")
    for target in targets if isinstance(targets, list) else ():
        if isinstance(target, dict) and target.get("name") == head.target:
            value = target.get("value")
            return head.form.format(value) if isinstance(value, int | float) else None
    return None


def _kept(results: Mapping[str, Mapping[str, Json]]) -> Iterator[tuple[str, float, int]]:
    report = results.get("memory.json", {})
    for who in CONTENDERS:
        at: Json = None
        for side in ("ours", "peers"):
            entry: Json = report.get(side)
            for step in (who, "held_out", "after_folds", FOLDS):
                entry = entry.get(step) if isinstance(entry, dict) else None
            at = at or entry
        share, count = (at.get("kept"), at.get("facts")) if isinstance(at, dict) else (None, None)
        if isinstance(share, int | float) and isinstance(count, int):
            yield who, float(share), count
