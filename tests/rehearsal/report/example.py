"""A report with one entry of each kind."""

from __future__ import annotations

from rehearsal.report.report import (
    BotTurnReport,
    CompactionReport,
    ExpectationResult,
    LatencyPercentiles,
    LatencyReport,
    RehearsalReport,
    UtteranceReport,
)
from rehearsal.runner.observations import ObservedPromptPart


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
            BotTurnReport("Ithaca.", "ithaca", payload=(ObservedPromptPart("system", "summary", "Ithaca", 3, 0, 9),)),
        ),
        latency=LatencyReport(LatencyPercentiles(512.3, 512.3, 1), LatencyPercentiles(None, None)),
    )
