"""A report with one entry of each kind."""

from __future__ import annotations

from compaction.model import Seq
from compaction.payload import PartKind, PayloadPart
from rehearsal.report.report import (
    BotTurnReport,
    CompactionReport,
    ExpectationResult,
    LatencyPercentiles,
    LatencyReport,
    RehearsalReport,
    UtteranceReport,
)


def example() -> RehearsalReport:
    """Return a report with one entry of each kind."""
    return RehearsalReport(
        passed=False,
        scenario="A test",
        started="2026-11-01T20:00:00+00:00",
        duration_s=12.5,
        expectations=(ExpectationResult("max_wer", passed=False, detail="20.0%"),),
        wer=0.2,
        utterances=(UtteranceReport("Mira", "hello", "yellow", 1.0, 512.3),),
        packets={"received": 9, "lost": 1, "concealed": 1, "dave_failures": 0},
        compactions=(CompactionReport(0, 10, 9, 420, 12.5),),
        summary="Mira wants to go to Ithaca.",
        bot_turns=(
            BotTurnReport(
                "Ithaca.", "ithaca", payload=(PayloadPart("system", PartKind.SUMMARY, Seq(0), Seq(9), 3, "Ithaca"),)
            ),
        ),
        latency=LatencyReport(LatencyPercentiles(512.3, 512.3, 1), LatencyPercentiles(None, None)),
    )
