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

    from benchmarks.memory.conversations.conversation import RecordedConversation
    from benchmarks.memory.roomtone_search import RoomtoneSearch
    from benchmarks.progress import Progress
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
    asked = answered = among_ten = corrected = stale_first = stale_alone = without = quotes = 0
    tokens: list[int] = []
    progress.step("quotes in prompts", total=len(conversations))
    for conversation in conversations:
        seen = len(conversation.lines) - RECENT_WINDOW
        questions = [each for each in _asked_facts(conversation) if max(each.answers) < seen]
        if questions:
            async with open_roomtone_search(embedder) as search:
                await search.add(conversation.lines)
                await search.embed_all()
                for each in questions:
                    hits, found = await _quotes(conversation, search, each.text, seen)
                    near = {turn.seq for hit in hits[:_TEN] for turn in hit.turns}
                    shown = {quote.recalled.seq for quote in found}
                    outdated = {quote.recalled.seq for quote in found if quote.recalled.superseded_by is None}
                    asked += 1
                    answered += not each.answers.isdisjoint(shown)
                    among_ten += not each.answers.isdisjoint(near)
                    corrected += bool(each.stale)
                    stale_first += _is_stale_first(each, found)
                    stale_alone += each.answers.isdisjoint(shown) and not each.stale.isdisjoint(outdated)
                    without += not found
                    quotes += len(found)
                    tokens.append(sum(quote.part.tokens for quote in found))
        progress.advance()
    figures: dict[str, Json] = {"questions": asked, "conversations": len(conversations)}
    if asked:
        figures |= {
            "answered": round(answered / asked, 4),
            "among_ten": round(among_ten / asked, 4),
            "corrected": corrected,
            "stale_first": share_of(stale_first, corrected),
            "stale_alone": round(stale_alone / asked, 4),
            "without_quote": without,
            "quotes": round(quotes / asked, 2),
            "tokens_mean": round(sum(tokens) / asked, 1),
            "tokens_most": max(tokens),
        }
    return figures


def _is_stale_first(asked: _AskedFact, found: Sequence[Quote]) -> bool:
    """Return whether an old answer without a mark is quoted before the answer that holds."""
    about = [quote.recalled for quote in found if quote.recalled.seq in asked.answers | asked.stale]
    return bool(about) and about[0].seq in asked.stale and about[0].superseded_by is None


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
