"""Explains a reply: what the model was sent, part by part, and the facts behind its summary."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bot.store.history import SessionHistory
from bot.store.prompts import PromptFigures, PromptStore, SentPrompt
from compaction.memory.chapters import Chapter, chapters_of
from compaction.model import Fact, Segment, Seq, SessionId, Turn
from compaction.summary.folded import known_facts_of, standing_facts

if TYPE_CHECKING:
    from bot.store.database import Database
    from compaction.ports import TurnStore


@dataclass(frozen=True, slots=True)
class TracedFact:
    """One fact behind a summary, with the segment that has it and its turns, as far as they are stored."""

    fact: Fact
    segment: Segment
    turns: tuple[Turn, ...]


@dataclass(frozen=True, slots=True)
class Explanation:
    """One explained reply. `sent`: what the model was sent, one prompt for each call, oldest first; at least one.

    `facts`: those behind the summary in the last of them, as far as they are stored.
    """

    sent: tuple[SentPrompt, ...]
    facts: tuple[TracedFact, ...]


class Explainer:
    """Explains replies from the stored data. Every method raises `StoreError`."""

    def __init__(self, database: Database, turns: TurnStore) -> None:
        self._history = SessionHistory(database)
        self._prompts = PromptStore(database)
        self._turns = turns

    async def replies(self, session_id: SessionId) -> tuple[PromptFigures, ...]:
        """Return the last prompt for each reply of a session, in numbers, oldest first."""
        return tuple({each.answer_to: each for each in await self._prompts.figures(session_id)}.values())

    async def explain(self, session_id: SessionId, turn: int) -> Explanation | None:
        """Return what models were sent for the reply to a turn; None if nothing is stored of it."""
        sent = await self._prompts.sent_for(session_id, turn)
        if not sent:
            return None
        return Explanation(sent, await self.facts(session_id, cursor=sent[-1].figures.cursor))

    async def chapters(self, session_id: SessionId) -> tuple[Chapter, ...]:
        """Return the chapters of a session, oldest first."""
        return chapters_of(await self._history.segments(session_id))

    async def facts(self, session_id: SessionId, *, cursor: int | None = None) -> tuple[TracedFact, ...]:
        """Return the facts behind the session's summary, oldest first, with their turns. `cursor`: those that held when
        the turns before it were folded; None: now.
        """
        folded = tuple(
            each
            for each in await self._history.segments(session_id)
            if not each.closing and (cursor is None or each.end <= cursor)
        )
        known = standing_facts(folded)
        by_ref = {each.ref: segment for segment in folded for each in known_facts_of(segment)}
        wanted = [seq for each in known for seq in each.fact.turns]
        first, end = Seq(min(wanted, default=0)), Seq(max(wanted, default=-1) + 1)
        said = {turn.seq: turn for turn in await self._turns.turns(session_id, first, end)}
        return tuple(
            TracedFact(each.fact, by_ref[each.ref], tuple(said[seq] for seq in each.fact.turns if seq in said))
            for each in known
        )
