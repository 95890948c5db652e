"""Measures whether the prompt of a reply quotes the answer: questions at the end of a conversation, called by name.

The quotes are chosen as `bot.brain.context` chooses them, with the last turns in view and no summary.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC
from typing import TYPE_CHECKING

from benchmarks.figures import share_of
from benchmarks.memory.roomtone_search import SESSION, open_roomtone_search
from bot.brain.context import QUOTE_TOKENS, RESULTS_PER_QUOTE
from bot.brain.wakeword import strip_call
from bot.tuning import UNTUNED
from compaction.memory.passage import Scope
from compaction.memory.quotes import select_quotes
from compaction.memory.recall import parse_query
from compaction.model import Seq
from compaction.window import RECENT_WINDOW

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from benchmarks.measuring import Progress
    from benchmarks.memory.conversations.conversation import RecordedConversation
    from benchmarks.memory.roomtone_search import RoomtoneSearch
    from benchmarks.report import Json
    from compaction.memory.quotes import Quote
    from compaction.memory.recall import RecallHit
    from compaction.ports import Embedder

_NAME = "Roomtone"
_TEN = 10
# Seconds after the last line in which the question is asked.
_ASKED_AFTER_S = 60.0


@dataclass(frozen=True, slots=True)
class _AskedFact:
    """A question, the lines that answer it, and the lines whose answer was corrected later."""

    text: str
    answers: frozenset[int]
    stale: frozenset[int]


async def quotes_in_prompts(
    conversations: Sequence[RecordedConversation], embedder: Embedder | None, progress: Progress
) -> dict[str, Json]:
    """Return how many questions have their answer among the quotes of the prompt.

    The questions are those about planted facts, and people's questions with known evidence, if the answer is not in
    the last turns anyway. `among_ten`: the share of them whose answer is among the first ten hits, or beside one of
    them. `corrected`: questions whose answer was corrected; `stale_first`: those of them with the old
    answer quoted first, without a mark. `stale_alone`: questions of which only an old answer is quoted, without a mark.
    """
    asked: list[dict[str, int]] = []
    progress.step("quotes in prompts", total=len(conversations))
    for conversation in conversations:
        seen = len(conversation.lines) - RECENT_WINDOW
        questions = [each for each in _asked_facts(conversation) if max(each.answers) < seen]
        if questions:
            async with open_roomtone_search(embedder) as search:
                await search.add(conversation.lines)
                await search.embed_all()
                asked += [_counted(each, *await _quotes(conversation, search, each.text, seen)) for each in questions]
        progress.advance()
    figures: dict[str, Json] = {"questions": len(asked), "conversations": len(conversations)}
    if asked:
        total = {name: sum(each[name] for each in asked) for name in asked[0]}
        figures |= {
            "answered": round(total["answered"] / len(asked), 4),
            "among_ten": round(total["among_ten"] / len(asked), 4),
            "corrected": total["corrected"],
            "stale_first": share_of(total["stale_first"], total["corrected"]),
            "stale_alone": round(total["stale_alone"] / len(asked), 4),
            "without_quote": total["without_quote"],
            "quotes": round(total["quotes"] / len(asked), 2),
            "tokens_mean": round(total["tokens"] / len(asked), 1),
            "tokens_most": max(each["tokens"] for each in asked),
        }
    return figures


def _counted(asked: _AskedFact, hits: Sequence[RecallHit], found: Sequence[Quote]) -> dict[str, int]:
    """Return what one question adds to the figures."""
    near = {turn.seq for hit in hits[:_TEN] for turn in hit.turns}
    shown = [quote.recalled.seq for quote in found]
    # Old answers that no mark tells as such.
    stale = {quote.recalled.seq for quote in found if quote.recalled.superseded_by is None} & asked.stale
    first = next((seq for seq in shown if seq in asked.answers | asked.stale), None)
    return {
        "answered": not asked.answers.isdisjoint(shown),
        "among_ten": not asked.answers.isdisjoint(near),
        "corrected": bool(asked.stale),
        "stale_first": first in stale,
        "stale_alone": asked.answers.isdisjoint(shown) and bool(stale),
        "without_quote": not found,
        "quotes": len(found),
        "tokens": sum(quote.part.tokens for quote in found),
    }


def _asked_facts(conversation: RecordedConversation) -> Iterator[_AskedFact]:
    for fact in conversation.facts:
        *old, current = fact.statements
        yield _AskedFact(fact.question, frozenset({current.seq}), frozenset(each.seq for each in old))
    for question in conversation.questions:
        if question.evidence:
            yield _AskedFact(question.text, frozenset(question.evidence), frozenset())


async def _quotes(
    conversation: RecordedConversation, search: RoomtoneSearch, question: str, seen: int
) -> tuple[Sequence[RecallHit], tuple[Quote, ...]]:
    text = strip_call(f"{_NAME}, {question}", (_NAME,))
    most = UNTUNED.quotes
    found = await search.recall.search(text, Scope(in_view=(SESSION, Seq(seen))), limit=RESULTS_PER_QUOTE * most)
    lines = conversation.lines
    return found, select_quotes(
        found,
        asked=parse_query(text),
        session_id=SESSION,
        asked_at=lines[-1].at + _ASKED_AFTER_S,
        in_view=[*((line.speaker, line.text) for line in lines[seen:]), ("", text)],
        most=most,
        max_tokens=QUOTE_TOKENS,
        zone=UTC,
    )
