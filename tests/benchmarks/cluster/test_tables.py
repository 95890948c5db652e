"""What the tables about a cluster's faults tell of each time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.cluster.tables import FAULT_HEAD, fault_rows

if TYPE_CHECKING:
    from benchmarks.report import Json


def test_a_fault_tells_what_it_cost_besides_the_time() -> None:
    """Rooms that hear again soon may have lost the beginning of a sentence, and the reader sees how much."""
    seen: list[Json] = [
        {"hears_after_s": [0.25], "heard_again_s": [0.3], "missing_s": [5.8], "sentences_lost": []},
        {"hears_after_s": [0.1], "heard_again_s": [7.08], "missing_s": [0], "sentences_lost": ["room 1, take 2"]},
    ]
    # The other faults take no room's process away, so their rooms do not hear again.
    report: dict[str, Json] = {"ours": {"room": seen, "calm": seen}}
    assert [dict(zip(FAULT_HEAD, row, strict=True)) for row in fault_rows(report)] == [
        {
            "fault": "room",
            "seen": "seen 2 times",
            "hears again after, s (the target)": hears,
            "first stored speech sent after, s": stored,
            "speech that is not stored, s": missing,
            "lost sentences": lost,
        }
        for hears, stored, missing, lost in (("0.2", "0.3", "5.8", "none"), ("0.1", "7.1", "0.0", "room 1, take 2"))
    ]
