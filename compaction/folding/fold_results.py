"""Makes what a run stores from the summariser's answer: a segment, a repaired segment or a chapter. No I/O."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from compaction.folding.ledger_view import LedgerView
from compaction.summary.port import ChapterFold, Fold, FoldRequest
from compaction.summary.segments import make_chapter, make_repaired_segment, make_segment

if TYPE_CHECKING:
    from compaction.folding.state import Run
    from compaction.model import Chapter, Segment, SessionId
    from compaction.summary.ledger import SegmentLedger
    from compaction.summary.port import ChapterRequest


@dataclass(frozen=True, slots=True)
class FoldResult:
    """What a run made: the record to store, and the ledger with it. Token counts are as in `Fold`.

    `by_model`: whether the session's usual summariser made it, which is a model if the settings name one.
    """

    record: Segment | Chapter
    view: LedgerView
    by_model: bool
    prompt_tokens: int | None
    completion_tokens: int | None

    @property
    def summary(self) -> str:
        """Return the text of the new summary."""
        return "" if self.view.rendered is None else self.view.rendered.text


def fold_result(
    run: Run,
    request: FoldRequest | ChapterRequest,
    fold: Fold | ChapterFold,
    ledger: SegmentLedger,
    *,
    session_id: SessionId,
    revision: int,
    summariser: str,
    by_model: bool,
    at: float,
) -> FoldResult:
    """Return what the run stores. `summariser`: the `name` of the `Summariser` that made the fold. `by_model`: as in
    `FoldResult`. `revision`: before the run. `at`: now, UTC epoch seconds.
    """
    if isinstance(fold, Fold) and fold.made_by:
        summariser = fold.made_by
    made_by = f"{summariser} {fold.form}".strip()
    record: Segment | Chapter
    if isinstance(fold, ChapterFold):
        assert run.chapter is not None, "only the run of a chapter asks for one"
        made_by = f"{made_by} degraded" if run.degraded else made_by
        record = make_chapter(run.chapter, fold, session_id=session_id, summariser=made_by, at=at)
        after = ledger.with_chapter(record)
    elif run.repairs is not None:
        old = next(each for each in ledger.degraded if each.id == run.repairs)
        record = make_repaired_segment(old, fold, later=ledger.facts_after(old.id), summariser=made_by, at=at)
        after = ledger.with_repaired(record)
    else:
        assert isinstance(request, FoldRequest), "the run of a batch asks for its turns"
        record = make_segment(
            request,
            fold,
            session_id=session_id,
            revision=revision,
            summariser=made_by,
            degraded=run.degraded,
            at=at,
        )
        after = ledger.with_segment(record)
    return FoldResult(record, LedgerView.of(after), by_model, fold.prompt_tokens, fold.completion_tokens)
