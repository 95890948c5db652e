"""The five results that the README shows with their goals, for people who decide whether to try Roomtone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from benchmarks.report import Json


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
        "End of a question to the first sound of the answer, median, without the language model's time",
        "{:,.0f} ms",
    ),
    Headline("reply", "end of speech to first voiced sound, P95 ms", "The same, 95th percentile", "{:,.0f} ms"),
    Headline(
        "reply",
        "answered of what was for it, held-out talks",
        "Share of the questions to the bot that it answers",
        "{:.1%}",
    ),
    Headline(
        "unasked",
        "spoken unasked in real talk among people, whole turns",
        "Answers that nobody asked for, in transcripts of meetings and games",
        "{:.0f}",
    ),
    Headline(
        "memory",
        "answers among the quotes of a prompt, planted facts",
        "Share of questions about earlier talk whose answer reaches the model as a quote",
        "{:.1%}",
    ),
)


def headlines(results: Mapping[str, Mapping[str, Json]]) -> list[str]:
    """Return the table of the headline figures. A figure that was not measured has no row."""
    rows = [row for head in HEADLINES if (row := _row(head, results)) is not None]
    return ["| | measured | goal | of |", "|---|---|---|---|", *rows, ""]


def _row(head: Headline, results: Mapping[str, Mapping[str, Json]]) -> str | None:
    targets = results.get(f"{head.bench}.json", {}).get("targets")
    for target in targets if isinstance(targets, list) else ():
        if isinstance(target, dict) and target.get("name") == head.target:
            value = target.get("value")
            if isinstance(value, int | float):
                return f"| {head.words} | {head.form.format(value)} | {target.get('goal')} | {target.get('sample')} |"
    return None
