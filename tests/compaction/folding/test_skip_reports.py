"""Skips are reported at once when their reason is new, and counted while it stays."""

from __future__ import annotations

from dataclasses import replace

from compaction.folding.events import FoldSkipped
from compaction.folding.signals import EmitEvent
from compaction.folding.skip_reports import SkipReports
from compaction.folding.window import SkipReason
from compaction.model import Seq

SKIP = FoldSkipped(
    run_id=None,
    reason=SkipReason.BELOW_THRESHOLD,
    cursor=Seq(0),
    total_turns=5,
    eligible_count=0,
    threshold=60,
    pending_note_count=0,
    repeated=0,
)


def test_first_skip_of_a_reason_is_reported_at_once() -> None:
    reports = SkipReports()
    assert reports.report(SKIP) == (EmitEvent(SKIP),)
    assert reports.report(replace(SKIP, total_turns=6)) == ()


def test_repetitions_are_reported_as_a_count() -> None:
    """With the next reason, or when a run begins: as the last of them, and how many there were."""
    reports = SkipReports()
    disabled = replace(SKIP, reason=SkipReason.DISABLED)
    for total in (5, 6, 7):
        reports.report(replace(SKIP, total_turns=total))
    counted = replace(SKIP, total_turns=7, repeated=2)
    assert reports.report(disabled) == (EmitEvent(counted), EmitEvent(disabled))
    assert reports.flush() == ()
    assert reports.report(disabled) == (EmitEvent(disabled),)
