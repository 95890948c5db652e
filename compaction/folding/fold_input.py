"""What a fold is given: turns, notes and the summary so far, as far as their speakers let a model have them.

`fold_requests` builds the requests from it. Only the repair of a segment needs the store, because its turns have left
memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from compaction.errors import StoreError
from compaction.folding.fold_requests import (
    first_context_turn,
    request_for_batch,
    request_for_chapter,
    request_for_repair,
    turns_before,
)
from compaction.model import Seq
from compaction.summary.segments import make_closing_segment

if TYPE_CHECKING:
    from compaction.folding.fold_results import LedgerView
    from compaction.folding.outbox import Outbox
    from compaction.folding.state import Run, SessionState
    from compaction.folding.withheld import WithheldPeople
    from compaction.model import RenderedSummary, Segment, SegmentId, SessionId, Strategy
    from compaction.summary.port import ChapterRequest, FoldRequest
    from compaction.timeline import Timeline


class FoldInput:
    """The input of one session's folds. Not thread-safe."""

    def __init__(
        self,
        session_id: SessionId,
        *,
        timeline: Timeline,
        outbox: Outbox,
        withheld: WithheldPeople,
        strategy: Strategy,
    ) -> None:
        self._session_id = session_id
        self._timeline = timeline
        self._outbox = outbox
        self._withheld = withheld
        self._strategy = strategy

    def update_withheld(self, state: SessionState) -> bool:
        """Take over who is withheld now; return whether anybody is. Call it before anything goes to a model."""
        folded_until = state.memory.cursor if state.run is None else max(state.run.end, state.memory.cursor)
        return self._withheld.update(said_until=Seq(self._timeline.total), folded_until=Seq(folded_until))

    def summary(self, view: LedgerView) -> RenderedSummary | None:
        """Return the summary of all folded turns and notes, without what is withheld."""
        return self._withheld.summary(view.ledger, view.rendered)

    async def request(self, run: Run, view: LedgerView, state: SessionState) -> FoldRequest | ChapterRequest:
        """Return what the summariser is asked in a run. Raises StoreError if the turns of a repair can't be read."""
        if run.chapter is not None:
            return request_for_chapter(run.chapter, self._timeline, view.ledger, rendered=self.summary(view))
        if run.repairs is not None:
            return await self._repair_request(run, run.repairs, view)
        # Somebody may have opted out since the check.
        self.update_withheld(state)
        request = request_for_batch(
            run,
            self._timeline,
            self._withheld.ledger(view.ledger),
            rendered=self.summary(view),
            pending=state.notes.pending,
            strategy=self._strategy,
        )
        return self._withheld.request(request)

    def closing_segment(self, view: LedgerView, state: SessionState, *, degraded: bool, at: float) -> Segment | None:
        """Return the segment of everything that is not folded when the session ends; None if there is nothing.

        `degraded`: a model would have made more of it. `at`: now, UTC epoch seconds.
        """
        self.update_withheld(state)
        start = max(state.memory.cursor, self._timeline.first)
        return make_closing_segment(
            tuple(map(self._withheld.turn, self._timeline.since(start))),
            tuple(map(self._withheld.note, (*state.notes.pending, *state.notes.live))),
            session_id=self._session_id,
            known=self._withheld.ledger(view.ledger).known_facts(),
            before=tuple(map(self._withheld.turn, turns_before(self._timeline, start))),
            degraded=degraded,
            at=at,
        )

    async def _repair_request(self, run: Run, segment_id: SegmentId, view: LedgerView) -> FoldRequest:
        """Return the request to repair a segment, with its turns read from the store."""
        stored = await self._outbox.turns(first_context_turn(run.start), run.end)
        found = sum(turn.seq >= run.start for turn in stored)
        if found != run.batch_size:
            raise StoreError(
                "Of turns {start} to {end} only {found} are stored.", start=run.start, end=run.end - 1, found=found
            )
        return request_for_repair(run, segment_id, stored, view.ledger, strategy=self._strategy)
