"""Measure whether search finds facts that left the summary. Each fact's question may return 1,200 characters of
results.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.memory.conversations.folds import turns_needed
from benchmarks.memory.judges.fact_judge import FactJudge
from compaction.folding.window import BATCH_SIZE
from compaction.summary.port import MAX_SUMMARY_CHARS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.memory.conversations.conversation import RecordedConversation
    from benchmarks.memory.search.retrieval import Retriever

_QUOTES = 10


@dataclass(frozen=True, slots=True)
class FoundFacts:
    """The result of searching for all facts that are due.

    `old_first`: corrected facts whose old value came first without a mark, or alone. `with_summary`: facts that are in
    the summary or were found by the search.
    """

    facts: int
    found: int
    corrected: int
    old_first: int
    with_summary: int

    def __add__(self, other: FoundFacts) -> FoundFacts:
        return FoundFacts(
            self.facts + other.facts,
            self.found + other.found,
            self.corrected + other.corrected,
            self.old_first + other.old_first,
            self.with_summary + other.with_summary,
        )


async def find_facts(conversation: RecordedConversation, retriever: Retriever, folds: int, summary: str) -> FoundFacts:
    """Search for every fact that is due after `folds` folds. `retriever` must contain the turns up to that point."""
    judge = FactJudge(conversation.facts, conversation.speakers)
    cursor = folds * BATCH_SIZE
    total = FoundFacts(0, 0, 0, 0, 0)
    for fact in judge.due(cursor, turns_needed(folds)):
        quotes = await retriever.search(fact.question, limit=_QUOTES)
        shown = fit_summary_size([quote.text for quote in quotes])
        found = judge.verdict("\n".join(shown), fact, cursor)
        corrected = sum(each.seq < cursor for each in fact.statements) > 1
        unmarked = [quote.text for quote in quotes[: len(shown)] if not quote.replaced]
        verdicts = (judge.verdict(text, fact, cursor) for text in unmarked)
        first = next((verdict for verdict in verdicts if verdict.kept or verdict.stale), None)
        total += FoundFacts(
            facts=1,
            found=found.kept,
            corrected=corrected,
            old_first=corrected and first is not None and not first.kept,
            with_summary=found.kept or judge.verdict(summary, fact, cursor).kept,
        )
    return total


def fit_summary_size(texts: Sequence[str]) -> list[str]:
    """Return as many of the first texts as fit into the length of a summary."""
    kept: list[str] = []
    room = MAX_SUMMARY_CHARS
    for text in texts:
        if len(text) > room:
            break
        kept.append(text)
        room -= len(text) + 1
    return kept
