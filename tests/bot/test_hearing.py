"""From sound to text in one room: the queue, the guards, and that nothing is dropped in silence."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest

from bot import events, hearing
from bot.hearing import TICK_S, Hearing, SpokenText
from tests.fakes.brain import until
from tests.fakes.clock import FakeClock
from tests.fakes.hearing import LoudnessDetector, ScriptedRecognizer, speech
from voice.errors import RecogniserError
from voice.listening.ears import Ears
from voice.settings import ListeningSettings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

ADA, BO = 1, 2


class Bench:
    """Hearing with a scripted recogniser and a clock the test moves."""

    def __init__(self, *texts: str | Exception, language: str | None = None) -> None:
        self.clock = FakeClock()
        self.recognizer = ScriptedRecognizer(*texts)
        self.seen: list[events.Event] = []
        self.texts: list[SpokenText] = []
        self.hearing = Hearing(
            ears=Ears(LoudnessDetector(), ListeningSettings()),
            recognizer=self.recognizer,
            glossary=lambda: ("Roomtone", "Ada"),
            language=language,
            clock=self.clock,
            observe=self.seen.append,
            on_text=self._keep,
        )

    async def _keep(self, spoken: SpokenText) -> None:
        self.texts.append(spoken)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Run it."""
        task = asyncio.create_task(self.hearing.run(), name="hearing-under-test")
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def pass_time(self, seconds: float) -> None:
        """Let time pass tick by tick, as it does for the ears."""
        for _ in range(round(seconds / TICK_S)):
            await until(lambda: self.clock.sleeping > 0)
            self.clock.advance(TICK_S)
            await asyncio.sleep(0)

    async def say(self, user_id: int, *, seconds: float = 2.0) -> None:
        """Let somebody speak now, then be silent until it counts as said."""
        started = self.clock.monotonic()
        await self.pass_time(seconds)
        self.hearing.take(speech(user_id, at=started, seconds=seconds))
        await self.pass_time(1.5)

    @property
    def dropped(self) -> list[str]:
        """Return the reasons of what was dropped."""
        return [event.reason for event in self.seen if isinstance(event, events.UtteranceDropped)]


@pytest.mark.asyncio
async def test_speech_becomes_text_with_its_times() -> None:
    """Who spoke, what, when it began and ended acoustically, and when the text stood."""
    bench = Bench("Bo brings the lantern.")
    async with bench.running():
        await bench.say(ADA)
        await until(lambda: bool(bench.texts))
    spoken = bench.texts[0]
    assert (spoken.utterance.user_id, spoken.recognition.text) == (ADA, "Bo brings the lantern.")
    assert spoken.utterance.ended_at <= spoken.utterance.closed_at <= spoken.begun_at <= spoken.text_at
    heard = [event for event in bench.seen if isinstance(event, events.UtteranceHeard)]
    assert [(event.utterance_id, event.text) for event in heard] == [(spoken.utterance.id, spoken.recognition.text)]
    assert bench.recognizer.asked == [(ADA, None, ("Roomtone", "Ada"))]


@pytest.mark.asyncio
async def test_texts_come_in_the_order_in_which_speech_ended() -> None:
    """Two people one after the other stay in order, whatever the recogniser takes."""
    bench = Bench("The first to speak.", "The second to speak.")
    bench.recognizer.gate.clear()
    async with bench.running():
        await bench.say(ADA)
        await bench.say(BO)
        bench.recognizer.gate.set()
        await until(lambda: len(bench.texts) == 2)
    assert [(text.utterance.user_id, text.recognition.text) for text in bench.texts] == [
        (ADA, "The first to speak."),
        (BO, "The second to speak."),
    ]


@pytest.mark.asyncio
async def test_what_a_guard_refuses_is_told_and_no_turn() -> None:
    """A guess at noise is dropped with its reason."""
    bench = Bench("Thanks for watching!")
    bench.recognizer.mean_logprob = -0.9
    async with bench.running():
        await bench.say(ADA)
        await until(lambda: bool(bench.dropped))
    assert bench.dropped == ["phantom_phrase"]
    assert bench.texts == []


@pytest.mark.asyncio
async def test_a_failing_recogniser_costs_one_utterance() -> None:
    """The failure is told with its sentence, and the next utterance is heard."""
    bench = Bench(RecogniserError("The model broke. Pull it again."), "Still here.")
    async with bench.running():
        await bench.say(ADA)
        await bench.say(ADA)
        await until(lambda: bool(bench.texts))
    assert bench.dropped == ["recogniser_failed"]
    problems = [event.sentence for event in bench.seen if isinstance(event, events.Problem)]
    assert problems == ["The model broke. Pull it again."]
    assert bench.texts[0].recognition.text == "Still here."


@pytest.mark.asyncio
async def test_a_click_is_dropped_with_its_reason() -> None:
    """Too short to be speech, and told so."""
    bench = Bench()
    async with bench.running():
        await bench.say(ADA, seconds=0.1)
        await until(lambda: bool(bench.dropped))
    assert bench.dropped == ["too_short"]


@pytest.mark.asyncio
async def test_the_queue_is_bounded_and_tells_what_it_gives_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """A recogniser far behind loses the oldest, each told."""
    monkeypatch.setattr(hearing, "UTTERANCES_WAITING", 5)
    bench = Bench()
    bench.recognizer.gate.clear()
    async with bench.running():
        for _ in range(8):
            await bench.say(ADA)
        # One is in the recogniser, the queue is full of the newest, the rest is told.
        assert bench.dropped == ["overloaded"] * 2
        assert bench.hearing.dropped == 2


@pytest.mark.asyncio
async def test_last_words_become_text_before_the_end() -> None:
    """Somebody is still speaking when the room ends: what was said until then is not lost."""
    bench = Bench("And one more thing.")
    async with bench.running():
        bench.hearing.take(speech(ADA, at=bench.clock.monotonic())[:1])
        await bench.hearing.finish([ADA], within_s=5.0)
        assert [text.recognition.text for text in bench.texts] == ["And one more thing."]


@pytest.mark.asyncio
async def test_last_words_do_not_hold_up_the_end() -> None:
    """A recogniser that hangs costs the given time, no more."""
    bench = Bench()
    bench.recognizer.gate.clear()
    async with bench.running():
        bench.hearing.take(speech(ADA, at=bench.clock.monotonic())[:1])
        await bench.hearing.finish([ADA], within_s=0.05)
    assert bench.texts == []


@pytest.mark.asyncio
async def test_a_language_once_sure_is_expected() -> None:
    """Detection is for the first utterance; a fixed language is never detected; who left is forgotten."""
    bench = Bench()
    async with bench.running():
        await bench.say(ADA, seconds=3.0)
        await bench.say(ADA, seconds=3.0)
        bench.hearing.forget(ADA)
        await bench.say(ADA, seconds=3.0)
        await until(lambda: len(bench.texts) == 3)
    assert [language for _, language, _ in bench.recognizer.asked] == [None, "en", None]
    fixed = Bench(language="de")
    async with fixed.running():
        await fixed.say(ADA)
        await until(lambda: bool(fixed.recognizer.asked))
    assert fixed.recognizer.asked[0][1] == "de"
