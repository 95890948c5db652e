"""What a fold is given: turns, notes and the summary so far, as far as their speakers let a model have them.

`fold_requests` builds the requests from it. Only the repair of a segment needs the store, because its turns have left
memory.
"""

from __future__ import annotations

from functools import partial
from math import inf
from typing import TYPE_CHECKING

from compaction.errors import SummaryRefusedError, TurnsLostError
from compaction.folding.fold_requests import (
    first_context_turn,
    notes_of,
    request_for_batch,
    request_for_chapter,
    request_for_repair,
    turns_before,
)
from compaction.folding.ledger_view import off_the_loop
from compaction.model import Seq
from compaction.summary.port import FoldRequest
from compaction.summary.segments import make_closing_segment

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from compaction.folding.ledger_view import LedgerView
    from compaction.folding.outbox import Outbox
    from compaction.folding.state import Run, SessionState
    from compaction.folding.withheld import WithheldPeople
    from compaction.model import Segment, SegmentId, SessionId, Strategy, Turn
    from compaction.summary.port import ChapterRequest
    from compaction.timeline import Timeline

WITHHELD_MEANWHILE = "Somebody's words were withheld or given back meanwhile."


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
        return self._withheld.update(
            said_until=Seq(self._timeline.total),
            folded_until=Seq(folded_until),
            landed_at=-inf if state.memory.last_at is None else state.memory.last_at,
        )

    def allowed(self, view: LedgerView) -> LedgerView:
        """Return what may be told of all folded turns and notes, without what is withheld."""
        return self._withheld.view(view)

    def forget_cached(self) -> None:
        """Drop all copies of words, because words may have been forgotten."""
        self._withheld.forget_cached()

    @property
    def withheld_changes(self) -> int:
        """Return how often somebody was withheld or allowed again."""
        return self._withheld.changes

    async def prepare(self, view: LedgerView) -> None:
        """Make in a thread what `allowed` will return of a view that is about to be the session's."""
        await self._withheld.prepare(view)

    def batch(self, run: Run, state: SessionState) -> FoldRequest | None:
        """Return the turns and notes of a run's batch, as far as a model may have them. None for a repair, whose turns
        are in the store alone, and for a chapter.
        """
        if run.moves_cursor_to is None:
            return None
        self.update_withheld(state)
        turns = self._timeline.between(run.start, run.end)
        return self._withheld.request(FoldRequest(run.start, turns, notes_of(run, state.notes.pending), previous=None))

    async def request(self, run: Run, view: LedgerView, state: SessionState) -> FoldRequest | ChapterRequest:
        """Return what the summariser is asked in a run.

        Raises StoreError if the turns of a repair can't be read, and SummaryRefusedError if what the run is to make may
        not be told any more.
        """
        turns = () if run.repairs is None else await self._stored_turns(run)
        # Somebody may have opted out since the check.
        self.update_withheld(state)
        allowed = self._withheld.view(view)
        if run.chapter not in (None, allowed.chapter) or run.repairs not in (None, *_ids(allowed)):
            raise SummaryRefusedError(WITHHELD_MEANWHILE)
        if run.chapter is not None:
            chapter = request_for_chapter(run.chapter, self._timeline, allowed.ledger, rendered=allowed.rendered)
            return self._withheld.request(chapter)
        if run.repairs is not None:
            changes = self._withheld.changes
            make = partial(request_for_repair, run, run.repairs, turns, allowed.ledger, strategy=self._strategy)
            repair = await off_the_loop(len(allowed.ledger.segments), make)
            self.update_withheld(state)
            if self._withheld.changes != changes:
                raise SummaryRefusedError(WITHHELD_MEANWHILE)
            return self._withheld.request(repair)
        request = request_for_batch(
            run,
            self._timeline,
            allowed.ledger,
            rendered=allowed.rendered,
            pending=state.notes.pending,
            strategy=self._strategy,
        )
        return self._withheld.request(request)

    async def closing_segment(
        self, view: LedgerView, state: SessionState, *, degraded: bool, at: float
    ) -> Segment | None:
        """Return the segment of everything that is not folded when the session ends; None if there is nothing.

        `degraded`: a model would have made more of it. `at`: now, UTC epoch seconds. It is made beside the event loop:
        nothing may have changed meanwhile, which the caller has to check.
        """
        self.update_withheld(state)
        start = max(state.memory.cursor, self._timeline.first)
        turns = tuple(map(self._withheld.turn, self._timeline.since(start)))
        make = partial(
            make_closing_segment,
            turns,
            tuple(map(self._withheld.note, (*state.notes.pending, *state.notes.live))),
            session_id=self._session_id,
            known=self._withheld.view(view).ledger.known_facts(),
            before=tuple(map(self._withheld.turn, turns_before(self._timeline, start))),
            degraded=degraded,
            at=at,
        )
        return await off_the_loop(len(turns), make)

    async def _stored_turns(self, run: Run) -> Sequence[Turn]:
        """Return the turns of the segment that a run repairs and those just before it, from the store."""
        stored = await self._outbox.turns(first_context_turn(run.start), run.end)
        found = sum(turn.seq >= run.start for turn in stored)
        if found != run.batch_size:
            raise TurnsLostError(
                "Of turns {start} to {end} only {found} are stored.", start=run.start, end=run.end - 1, found=found
            )
        return stored


def _ids(view: LedgerView) -> Iterator[SegmentId]:
    return (each.id for each in view.ledger.segments)
