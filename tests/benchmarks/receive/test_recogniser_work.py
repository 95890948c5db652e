"""What the recogniser did while it was measured."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from benchmarks.receive.recogniser_work import RecogniserWork
from bot.clock import SystemClock
from bot.dropped_sounds import OVERLOADED
from bot.events import InterimTranscribed, SpeechDropped, UtteranceTranscribed
from bot.health import Health
from bot.monitoring.metrics import Metrics
from voice.asr.scheduler import RecogniserFigures


@dataclass
class _Recogniser:
    """The bot's metrics of a recogniser that has done what the test says."""

    figures: RecogniserFigures

    def __post_init__(self) -> None:
        self._metrics = Metrics(Health(SystemClock()))
        self._metrics.add_recogniser(lambda: self.figures)

    async def metrics(self) -> str:
        return self._metrics.scrape()[0].decode()


@pytest.mark.asyncio
async def test_only_what_was_done_while_it_was_measured_counts() -> None:
    """Neither the recogniser's work nor what the room reported of the warm-up is counted."""
    recogniser = _Recogniser(RecogniserFigures(completed=9, shed=7, audio_s=40.0, compute_s=8.0))
    work = RecogniserWork(recogniser.metrics)
    work.observe(UtteranceTranscribed("early", 1, "Hello.", 0.0, 1.0, 1.5))
    work.observe(SpeechDropped("lost", 1, OVERLOADED, "", 0.0, 1.0, 2.0))
    await work.begin()
    for number in range(3):
        work.observe(UtteranceTranscribed(f"text-{number}", 1, "Hello.", 0.0, 1.0, 1.5))
        work.observe(SpeechDropped(f"dropped-{number}", 2, OVERLOADED, "", 0.0, 1.0, 2.0))
    work.observe(SpeechDropped("noise", 2, "no_speech", "", 0.0, 1.0, 2.0))
    work.observe(InterimTranscribed(3, "Hel", 2.0))
    recogniser.figures = RecogniserFigures(completed=13, shed=12, audio_s=52.0, compute_s=17.0)
    assert await work.figures(10.0) == {
        "busy": 0.9,
        "speech_s": 12.0,
        "texts": 3,
        "interim_texts": 1,
        "dropped": {"no_speech": 1, "overloaded": 3},
        "interim_dropped": 5,
    }


@pytest.mark.asyncio
async def test_a_bot_without_a_recogniser_of_its_own_computes_nothing() -> None:
    """Speech may be recognised elsewhere; its texts are counted all the same."""

    async def none() -> str:
        return ""

    work = RecogniserWork(none)
    await work.begin()
    work.observe(UtteranceTranscribed("text", 1, "Hello.", 0.0, 1.0, 1.5))
    found = await work.figures(10.0)
    assert (found["busy"], found["texts"]) == (0.0, 1)
