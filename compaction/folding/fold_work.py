"""The work of one run: asks the summariser, and makes of its answer what the run stores; and the closing segment.

`compactor` starts it in a task and stores the result. Nothing in it outlives the run.
"""

from __future__ import annotations

from functools import partial
from math import inf, nextafter
from typing import TYPE_CHECKING

from compaction.errors import SummaryRefusedError
from compaction.folding.events import FoldStarted
from compaction.folding.fold_input import WITHHELD_MEANWHILE
from compaction.folding.fold_results import fold_result
from compaction.folding.ledger_view import off_the_loop
from compaction.folding.signals import FailureSource
from compaction.sentence_cache import clear_sentence_caches

if TYPE_CHECKING:
    from collections.abc import Callable

    from compaction.folding.fold_input import FoldInput
    from compaction.folding.fold_results import FoldResult
    from compaction.folding.ledger_view import LedgerView
    from compaction.folding.machine import FoldingMachine
    from compaction.folding.state import Run, SessionState
    from compaction.folding.summarisers import Summarisers
    from compaction.model import CompactionState, Segment, SessionId
    from compaction.ports import SessionClock
    from compaction.summary.port import ChapterFold, ChapterRequest, Fold, FoldRequest, Summariser


class FoldWork:
    """The work of `run`. `view`: of the session when the run begins; it stays the session's while the run is in flight.

    `machine`: only its state is read.
    """

    def __init__(
        self,
        run: Run,
        view: LedgerView,
        *,
        session_id: SessionId,
        machine: FoldingMachine,
        fold_input: FoldInput,
        summarisers: Summarisers,
        clock: SessionClock,
    ) -> None:
        self._run = run
        self._view = view
        self._session_id = session_id
        self._machine = machine
        self._input = fold_input
        self._summarisers = summarisers
        self._clock = clock
        # Who is at work now, and at fault if something is raised.
        self.culprit = FailureSource.CODE

    async def make(self) -> FoldResult:
        """Return what the run stores. Raises what the store and the summariser raise, and SummaryRefusedError if words
        were withheld or given back meanwhile.
        """
        run = self._run
        request = await self._input.request(run, self._view, self._machine.state)
        withheld_changes = self._input.withheld_changes
        self.culprit = self._summarisers.culprit(run, request)
        fold = await self._summarisers.fold(run, request)
        self._input.update_withheld(self._machine.state)
        if run.moves_cursor_to in (None, run.start) and self._input.withheld_changes != withheld_changes:
            # Only the turns of a batch tell whose words may be in what was made of it.
            self.culprit = FailureSource.CODE
            raise SummaryRefusedError(WITHHELD_MEANWHILE)
        result = await self._result(request, fold)
        self.culprit = FailureSource.CODE
        await self._input.prepare(result.view)
        return result

    async def _result(self, request: FoldRequest | ChapterRequest, fold: Fold | ChapterFold) -> FoldResult:
        state, ledger = self._machine.state, self._view.ledger
        make = partial(
            fold_result,
            self._run,
            request,
            fold,
            ledger,
            session_id=self._session_id,
            revision=state.memory.revision,
            summariser=self._summarisers.of(self._run, request).name,
            was_asked=self._summarisers.asks_usual(self._run, request),
            at=made_at(self._clock, state),
        )
        return await off_the_loop(len(ledger.segments), make)


async def closing_segment(
    view: Callable[[], LedgerView],
    *,
    machine: FoldingMachine,
    fold_input: FoldInput,
    summarisers: Summarisers,
    clock: SessionClock,
    on_defect: Callable[[Exception], None],
) -> tuple[Segment | None, CompactionState]:
    """Return the segment with which a session ends, and the state that it belongs to.

    It is made again if words were forgotten, withheld or given back while it was made. `view`: of the session now.
    `on_defect`: gets what a bug raises; the session ends all the same, without a closing segment.
    """
    segment: Segment | None = None
    while True:
        state = machine.state
        fold_input.update_withheld(state)
        changes = fold_input.withheld_changes
        try:
            # If there is a model, it would have made more of it than the rules do.
            segment = await fold_input.closing_segment(
                view(), state, degraded=summarisers.has_model, at=made_at(clock, state)
            )
        except Exception as exc:  # noqa: BLE001 - whatever a bug raises must not keep the session open
            on_defect(exc)
        fold_input.update_withheld(machine.state)
        if (machine.state, fold_input.withheld_changes) == (state, changes):
            return segment, state.compaction
        # What was read meanwhile may have been forgotten.
        clear_sentence_caches()
        segment = None


def fold_started(run: Run, summariser: Summariser) -> FoldStarted:
    """Return the event that a run begins."""
    return FoldStarted(
        run_id=run.id,
        cursor=run.start,
        batch_size=run.batch_size,
        recent_start=run.recent_start,
        pending_note_count=len(run.note_ids),
        summariser=summariser.name,
        model=summariser.model,
        repairs=run.repairs,
        chapter_level=run.chapter_level,
    )


def made_at(clock: SessionClock, state: SessionState) -> float:
    """Return now (UTC epoch seconds), but always later than the last landing, even if the clock was set back.

    A record that was made with knowledge of another must have the later time: readers order records by it.
    """
    last = state.memory.last_at
    return clock.now() if last is None else max(clock.now(), nextafter(last, inf))
