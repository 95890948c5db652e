"""The log line of an event has its fields and never contains people's words."""

from __future__ import annotations

from compaction.folding.events import FoldLanded, log_fields
from compaction.model import RunId, Seq


def test_summary_stays_out_of_the_log() -> None:
    """The listener gets the text of the summary, and the log gets only its length."""
    event = FoldLanded(RunId("r"), Seq(0), Seq(10), 9, "Ada: We leave.", 14, 12.5, None, None, 0, degraded=False)
    fields = log_fields(event)
    assert "summary" not in fields
    assert (fields["summary_chars"], fields["covered_through_turn"], fields["run_id"]) == (14, 9, "r")
    assert event.name == "voice_context_compaction_completed"
