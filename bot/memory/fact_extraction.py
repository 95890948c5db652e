"""Extracts facts about people from one session's turns: from each batch once, and again when a model repaired it.

`compaction.memory.people` decides which facts these are, `bot.memory.people` stores them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from compaction.folding.window import BATCH_SIZE
from compaction.model import Seq
from compaction.summary.extractive import extract_facts
from compaction.summary.port import KnownFact, known_facts_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bot.memory.outside_changes import OutsideChanges
    from bot.memory.people import PeopleBook
    from compaction.model import Fact, Segment, SegmentId, SessionId, Turn
    from compaction.ports import TurnStore
    from compaction.session import SessionMemory

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
        # Segments that were folded without the model when facts were extracted from their turns.
        self._degraded: set[SegmentId] = set()

    async def extract(self, through: int) -> None:
        """Extract facts from every unprocessed batch before `through`. Raises `StoreError`."""
        if not self._people.enabled:
            return
        if self._extracted_through is None:
            self._extracted_through = await self._people.extracted_through(self._session_id)
        refused = 0
        while self._extracted_through < through and refused < _MOST_REFUSED:
            start, end = self._extracted_through, min(self._extracted_through + BATCH_SIZE, through)
            if await self._extract_from(start, end):
                self._extracted_through = end
            else:
                refused += 1
        await self._extract_repaired(self._extracted_through)

    async def _extract_repaired(self, through: int) -> None:
        """Extract the facts before `through` again whose segments the model has made since."""
        for segment in self._memory.segments:
            if segment.degraded:
                self._degraded.add(segment.id)
            elif segment.id in self._degraded and segment.end <= through:
                if not await self._extract_from(segment.start, segment.end, repaired=segment):
                    return
                self._degraded.discard(segment.id)

    async def _extract_from(self, start: int, end: int, *, repaired: Segment | None = None) -> bool:
        """Extract facts from these turns. Returns False if nothing was stored because the session has changed.

        `repaired`: the segment of these turns, which were processed before.
        """
        is_current = self._changes.none_since_now()
        batch = await self._turns.turns(self._session_id, Seq(start), Seq(end))
        allowed = [self._memory.allowed_part(turn) for turn in batch]
        changed = {turn.seq for turn, left in zip(batch, allowed, strict=True) if left is not turn}
        known = self._facts_of(start, end, allowed) if repaired is None else known_facts_of(repaired)
        facts = [each for each in known if changed.isdisjoint(each.fact.turns)]
        if await self._people.extract(
            self._session_id,
            self._guild_id,
            facts,
            allowed,
            through=end,
            is_current=is_current,
            again=repaired is not None,
            superseded=self._superseded_by(facts),
        ):
            return True
        # A fold has just landed, or something was forgotten: again later, from what is left.
        await self._changes.take_over()
        return False

    def _superseded_by(self, facts: Sequence[KnownFact]) -> dict[str, Fact]:
        """Return the session's facts that these supersede, by their refs."""
        refs = {ref for each in facts for ref in each.fact.supersedes}
        owners = {ref.rpartition("#")[0] for ref in refs}
        known = [one for each in self._memory.segments if each.id in owners for one in known_facts_of(each)]
        return {each.ref: each.fact for each in (*known, *facts) if each.ref in refs}

    def _facts_of(self, start: int, end: int, batch: Sequence[Turn]) -> list[KnownFact]:
        """Return the facts of these turns: of their segments, or extracted if they are not folded. A recursive segment
        has no facts, so those of its turns are extracted too.
        """
        found: list[KnownFact] = []
        unread = list(batch)
        if end <= self._memory.cursor:
            folded = [each for each in self._memory.segments if start < each.end and each.start < end]
            # While these facts are stored, a model may make the segments again.
            self._degraded.update(each.id for each in folded if each.degraded)
            known = (each for segment in folded for each in known_facts_of(segment))
            found = [each for each in known if start <= each.fact.turns[-1] < end]
            recursive = [each for each in folded if each.is_recursive]
            unread = [turn for turn in batch if any(each.start <= turn.seq < each.end for each in recursive)]
        if not unread:
            return found
        # Not all facts: ten thousand turns have eight thousand, and other rooms wait meanwhile.
        extracted = extract_facts(unread, start=unread[0].seq, known=self._memory.known_facts)
        # No segment has this name, also if these turns are folded later.
        named = f"{self._session_id}:{start}-{end}-turns"
        return [*found, *(KnownFact(f"{named}#{index}", fact) for index, fact in enumerate(extracted))]
