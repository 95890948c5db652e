"""The figures of a Pipecat pipeline have the same meaning as the bot's own."""

from __future__ import annotations

import pytest

from benchmarks.reply.pipecat_answers import STAGES, pipecat_figures

ANSWERED: dict[str, object] = {
    "cut": 1,
    "late_text": False,
    "total_ms": 1_200.0,
    "moments_ms": {
        "pause": 200.0,
        "text": 700.0,
        "turn": 650.0,
        "model": 800.0,
        "synthesis": 1_100.0,
        "voice": 1_200.0,
    },
    "cpu_s": 2.0,
    "wall_s": 8.0,
}
MISSING: dict[str, object] = {
    "cut": 0,
    "late_text": False,
    "total_ms": None,
    "moments_ms": {},
    "cpu_s": 1.0,
    "wall_s": 12.0,
}


def test_answers_and_their_stages_are_counted() -> None:
    """Times are of the answers that came. Cuts, missing answers and CPU time are of all recordings."""
    figures = pipecat_figures([ANSWERED, MISSING], pauses=4)
    assert (figures["recordings"], figures["unanswered"]) == (2, 1)
    assert (figures["pauses_cut"], figures["pauses_cut_share"], figures["answered_before_the_end"]) == (1, 0.25, 0.5)
    assert figures["cpu_s_an_answer"] == 1.5
    assert figures["total_ms"] == {"count": 1, "p50": 1_200.0, "mean": 1_200.0, "p95": 1_200.0, "max": 1_200.0}
    stages = figures["stages_ms"]
    assert isinstance(stages, dict)
    medians = [spread["p50"] for spread in stages.values() if isinstance(spread, dict)]
    assert list(stages) == list(STAGES)
    # A turn that ended before the last text took no time after it.
    assert medians == pytest.approx([200.0, 500.0, 0.0, 100.0, 300.0, 100.0])


def test_text_that_comes_after_the_model_was_asked_is_told() -> None:
    """An answer that was asked for without the last words is counted as such."""
    figures = pipecat_figures([ANSWERED, {**ANSWERED, "late_text": True}], pauses=0)
    assert figures["asked_without_the_last_words"] == 1
    assert figures["pauses_cut_share"] is None
