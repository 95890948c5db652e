"""The work of one run: asks the summariser, and makes of its answer what the run stores; and the closing segment.

`compactor` starts it in a task and stores the result. Nothing in it outlives the run.
"""

from __future__ import annotations

from functools import partial
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

    from compaction.folding.fold_parts import FoldParts
    from compaction.folding.fold_results import FoldResult
    from compaction.folding.ledger_view import LedgerView
    from compaction.folding.state import Run
    from compaction.model import CompactionState, Segment
    from compaction.summary.port import ChapterFold, ChapterRequest, Fold, FoldRequest, Summariser


class FoldWork:
    """The work of `run`. `view`: of the session when the run begins; it stays so while the run is in flight."""

    def __init__(self, run: Run, view: LedgerView, parts: FoldParts) -> None:
        self._run = run
        self._view = view
        self._parts = parts
        # Who is at work now, and at fault if something is raised.
        self.culprit = FailureSource.CODE

    async def make(self) -> FoldResult:
        """Return what the run stores. Raises what the store and the summariser raise, and SummaryRefusedError if words
        were withheld or given back meanwhile.
        """
        run, parts = self._run, self._parts
        # While the store takes nothing, the result could not be stored either, and the model would be asked in vain.
        await parts.outbox.flush()
        request = await parts.input.request(run, self._view, parts.state)
        withheld_changes = parts.input.withheld_changes
        self.culprit = parts.summarisers.culprit(run, request)
        fold = await parts.summarisers.fold(run, request)
        parts.update_withheld()
        if run.moves_cursor_to in (None, run.start) and parts.input.withheld_changes != withheld_changes:
            # Only the turns of a batch tell whose words may be in what was made of it.
            self.culprit = FailureSource.CODE
            raise SummaryRefusedError(WITHHELD_MEANWHILE)
        result = await self._result(request, fold)
        self.culprit = FailureSource.CODE
        await parts.input.prepare(result.view)
        return result

    async def _result(self, request: FoldRequest | ChapterRequest, fold: Fold | ChapterFold) -> FoldResult:
        parts, ledger = self._parts, self._view.ledger
        make = partial(
            fold_result,
            self._run,
            request,
            fold,
            ledger,
            session_id=parts.session_id,
            revision=parts.state.memory.revision,
            summariser=parts.summarisers.of(self._run, request).name,
            by_model=parts.summarisers.asks_usual(self._run, request),
            at=parts.record_time(),
        )
        return await off_the_loop(len(ledger.segments), make)


async def closing_segment(
    view: Callable[[], LedgerView], parts: FoldParts, *, on_defect: Callable[[Exception], None]
) -> tuple[Segment | None, CompactionState]:
    """Return the segment with which a session ends, and the state that it belongs to.

    It is made again if words were forgotten, withheld or given back while it was made. `view`: of the session now.
    `on_defect`: gets what a bug raises; the session ends all the same, without a closing segment.
    """
    segment: Segment | None = None
    while True:
        state = parts.state
        parts.update_withheld()
        changes = parts.input.withheld_changes
        try:
            # If there is a model, it would have made more of it than the rules do.
            segment = await parts.input.closing_segment(
                view(), state, degraded=parts.summarisers.has_model, at=parts.record_time()
            )
        except Exception as exc:  # noqa: BLE001 - whatever a bug raises must not keep the session open
            on_defect(exc)
        parts.update_withheld()
        if (parts.state, parts.input.withheld_changes) == (state, changes):
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
