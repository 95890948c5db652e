"""Extracts facts about people from one session's folded turns, from each batch once.

`compaction.memory.people` decides which facts these are, `bot.memory.people` stores them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from compaction.model import Seq
from compaction.summary.folded import known_facts_of
from compaction.window import BATCH_SIZE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bot.memory.outside_changes import OutsideChanges
    from bot.memory.people import PeopleBook
    from compaction.model import Fact, SessionId
    from compaction.ports import TurnStore
    from compaction.session import SessionMemory
    from compaction.summary.port import KnownFact

# How often in one run facts are extracted again, because the session changed meanwhile.
_MOST_REFUSED = 3


class FactExtraction:
    """The extraction of facts from one session. `changes`: by others, which are taken over when facts are refused."""

    def __init__(
        self,
        session_id: SessionId,
        guild_id: int | None,
        *,
        memory: SessionMemory,
        turns: TurnStore,
        people: PeopleBook,
        changes: OutsideChanges,
    ) -> None:
        self._session_id = session_id
        self._guild_id = guild_id
        self._memory = memory
        self._turns = turns
        self._people = people
        self._changes = changes
        # The first turn that is not processed; None until it is read from the store.
        self._extracted_through: int | None = None

    async def extract(self, through: int) -> None:
        """Extract facts from every unprocessed batch before `through`. Raises `StoreError`."""
        if not self._people.enabled:
            return
        if self._extracted_through is None:
            self._extracted_through = await self._people.extracted_through(self._session_id)
        # What is not folded has no facts yet.
        through = min(through, self._memory.cursor)
        refused = 0
        while self._extracted_through < through and refused < _MOST_REFUSED:
            start, end = self._extracted_through, min(self._extracted_through + BATCH_SIZE, through)
            if await self._extract_from(start, end):
                self._extracted_through = end
            else:
                refused += 1

    async def _extract_from(self, start: int, end: int) -> bool:
        """Extract facts from these turns. Returns False if nothing was stored because the session has changed."""
        is_current = self._changes.none_since_now()
        batch = await self._turns.turns(self._session_id, Seq(start), Seq(end))
        allowed = [self._memory.allowed_part(turn) for turn in batch]
        changed = {turn.seq for turn, left in zip(batch, allowed, strict=True) if left is not turn}
        folded = [each for each in self._memory.segments if start < each.end and each.start < end]
        known = [each for segment in folded for each in known_facts_of(segment)]
        facts = [each for each in known if start <= each.fact.turns[-1] < end and changed.isdisjoint(each.fact.turns)]
        if await self._people.extract(
            self._session_id,
            self._guild_id,
            facts,
            allowed,
            through=end,
            is_current=is_current,
            superseded=self._superseded_by(facts),
        ):
            return True
        # A fold has just landed, or something was forgotten: again later, from what is left.
        await self._changes.take_over()
        return False

    def _superseded_by(self, facts: Sequence[KnownFact]) -> dict[str, Fact]:
        """Return the session's facts that these supersede, by their refs."""
        refs = {ref for each in facts for ref in each.fact.closes}
        owners = {ref.rpartition("#")[0] for ref in refs}
        known = [one for each in self._memory.segments if each.id in owners for one in known_facts_of(each)]
        return {each.ref: each.fact for each in (*known, *facts) if each.ref in refs}
