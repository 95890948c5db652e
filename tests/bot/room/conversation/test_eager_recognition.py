"""Eager recognition: when it starts in a pause, what it tells, and that it leaves no task running."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from bot.background_task import owned_task
from bot.room.conversation.eager_recognition import LASTING_PAUSE_S, EagerRecognition
from tests.fakes.brain import until
from tests.fakes.clock import FakeClock
from tests.voice.recordings import silence
from voice.listening.end_policy import PauseEvidence
from voice.listening.utterance import PauseBegan, Utterance

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from voice.audio import Pcm


def _pause(number: int = 1, *, asks: bool = True) -> PauseBegan:
    return PauseBegan(Utterance(f"u{number}", number, 0.0, 1.0, 1.2, silence(1)), asks)


class Bench:
    """Eager recognition with a recogniser that returns the utterance's id once `gate` is set."""

    def __init__(self, probability: float | None = None) -> None:
        self.clock = FakeClock()
        self.probability = probability
        self.answers: list[tuple[str, PauseEvidence | None, bool]] = []
        self.begun: list[str] = []
        self.early_texts: list[tuple[str, bool]] = []
        self.gate = asyncio.Event()
        self.gate.set()
        # The turn-end detector answers once this is set.
        self.judging = asyncio.Event()
        self.judging.set()
        # Whether the next answer that is complete shows that the person has gone on.
        self.goes_on = False
        self.eager: EagerRecognition[str] = EagerRecognition(
            turn_end_detector=self,
            on_judged=self._on_judged,
            recognise=self._recognise,
            with_text=lambda known, _: replace(known, sentence_end=0.97),
            clock=self.clock,
            on_recognised=lambda utterance, heard, likely: self.early_texts.append((heard, likely)),
        )

    def _on_judged(self, pause: PauseBegan, evidence: PauseEvidence | None, complete: bool) -> None:
        self.answers.append((pause.utterance.id, evidence, complete))
        if complete and self.goes_on:
            self.eager.discard(pause.utterance.id)

    async def judge(self, pcm: Pcm) -> float | None:
        """See `TurnEndDetector.judge`."""
        await self.judging.wait()
        return self.probability

    async def _recognise(self, utterance: Utterance) -> str:
        self.begun.append(utterance.id)
        await self.gate.wait()
        return utterance.id

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with owned_task(self.eager.run(), name="eager-recognition-under-test") as self.task:
            await asyncio.sleep(0)
            yield


async def test_what_was_begun_is_there_once() -> None:
    """`take` waits for the recognition and returns its text once; a second call gets None."""
    bench = Bench(0.95)
    bench.gate.clear()
    async with bench.running():
        bench.eager.on_pause(_pause())
        await until(lambda: bench.begun == ["u1"])
        taking = asyncio.create_task(bench.eager.take("u1"))
        await asyncio.sleep(0)
        bench.gate.set()
        assert await taking == "u1"
        assert await bench.eager.take("u1") is None
    assert bench.answers == [
        ("u1", PauseEvidence(0.95), False),
        ("u1", PauseEvidence(0.95, 0.97), True),
    ]


async def test_a_late_text_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the text takes too long, the end is decided without it, and the text is still used."""
    monkeypatch.setattr("bot.room.conversation.eager_recognition.TEXT_TIMEOUT_S", 0.0)
    bench = Bench(0.95)
    bench.gate.clear()
    async with bench.running():
        bench.eager.on_pause(_pause())
        await until(lambda: len(bench.answers) == 2)
        assert bench.answers[-1] == ("u1", PauseEvidence(0.95), True)
        bench.gate.set()
        assert await bench.eager.take("u1") == "u1"


async def test_going_on_throws_it_away() -> None:
    """If the person goes on speaking, the recognition is discarded and `take` returns None."""
    bench = Bench(0.95)
    bench.gate.clear()
    async with bench.running():
        bench.eager.on_pause(_pause())
        await until(lambda: bench.begun == ["u1"])
        bench.eager.discard("u1")
        bench.eager.discard("u1")
        assert await bench.eager.take("u1") is None


@pytest.mark.parametrize("probability", [0.98, 0.2, None])
async def test_however_finished_somebody_sounds_the_pause_is_recognised(probability: float | None) -> None:
    """Recognition does not wait for the turn-end detector, and no answer of the detector ends it. Without an answer the
    text decides nothing, so nobody waits for it.
    """
    bench = Bench(probability)
    bench.gate.clear()
    bench.judging.clear()
    async with bench.running():
        bench.eager.on_pause(_pause())
        await until(lambda: bench.begun == ["u1"])
        assert bench.answers == []
        bench.judging.set()
        await until(lambda: len(bench.answers) == 1)
        known = None if probability is None else PauseEvidence(probability)
        assert bench.answers == [("u1", known, known is None)]
        bench.gate.set()
        assert await bench.eager.take("u1") == "u1"


async def test_a_pause_that_lasts_is_more_likely_the_end() -> None:
    """The text of somebody who did not sound finished is told again as likely finished after enough silence."""
    bench = Bench(0.4)
    async with bench.running():
        bench.clock.advance(1.2)
        bench.eager.on_pause(_pause())
        await until(lambda: bench.early_texts == [("u1", False)])
        await until(lambda: bench.clock.sleeping > 0)
        bench.clock.advance(LASTING_PAUSE_S - 0.2)
        await until(lambda: bench.early_texts == [("u1", False), ("u1", True)])
        assert await bench.eager.take("u1") == "u1"


@pytest.mark.parametrize("taken", [True, False])
async def test_a_pause_that_is_over_does_not_last(taken: bool) -> None:
    """If the person goes on, or the end is certain before, the text is not told again."""
    bench = Bench(0.4)
    async with bench.running():
        bench.clock.advance(1.2)
        bench.eager.on_pause(_pause())
        await until(lambda: bench.early_texts == [("u1", False)])
        await until(lambda: bench.clock.sleeping > 0)
        if taken:
            assert await bench.eager.take("u1") == "u1"
        else:
            bench.eager.discard("u1")
        await until(lambda: bench.clock.sleeping == 0)
        bench.clock.advance(2.0)
        await asyncio.sleep(0)
    assert bench.early_texts == [("u1", False)]


@pytest.mark.parametrize(("probability", "likely"), [(0.95, True), (0.6, True), (0.4, False), (None, False)])
async def test_an_early_text_is_handed_on_at_once(probability: float | None, likely: bool) -> None:
    """An early text is passed on at once with whether the turn has probably ended. A discarded one is not passed on."""
    bench = Bench(probability)
    async with bench.running():
        bench.eager.on_pause(_pause())
        await until(lambda: bool(bench.early_texts))
        assert bench.early_texts == [("u1", likely)]
        bench.gate.clear()
        bench.eager.on_pause(_pause(2))
        await until(lambda: bench.begun == ["u1", "u2"])
        bench.eager.discard("u2")
        await asyncio.sleep(0)
    assert len(bench.early_texts) == 1
