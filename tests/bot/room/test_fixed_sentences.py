"""Sentences outside replies: they wait for a reply to end, and it is known whether people heard them."""

from __future__ import annotations

import asyncio

import pytest

from bot.room.fixed_sentences import POLL_S, FixedSentences
from tests.fakes.brain import FakeVoice, until
from tests.fakes.clock import FakeClock
from tests.fakes.place import FakeLink, FakePlace
from voice.speaking.playback import Playback


class Bench:
    """The sentences of a room whose connection takes sound as fast as the loop runs."""

    def __init__(self) -> None:
        self.clock, self.place, self.voice = FakeClock(), FakePlace(), FakeVoice()
        self.playback = Playback(monotonic=self.clock.monotonic)
        self.busy = False
        self.sentences = FixedSentences(self.place, self.playback, busy=lambda: self.busy, clock=self.clock)

    async def say(self, *sentences: str) -> bool:
        """Say sentences while frames are sent."""
        sending = asyncio.create_task(FakeLink(self.playback, lambda _: None).pull_frames(), name="frames")
        try:
            return await self.sentences.say(sentences, self.voice)
        finally:
            sending.cancel()


@pytest.mark.asyncio
async def test_all_sentences_are_played_in_their_order() -> None:
    """It is told that people heard them."""
    bench = Bench()
    assert await bench.say("I listen.", "I take part.")
    assert bench.voice.spoken == ["I listen.", "I take part."]


@pytest.mark.asyncio
async def test_a_reply_in_progress_comes_first() -> None:
    """Nothing is said before the reply is over."""
    bench = Bench()
    bench.busy = True
    saying = asyncio.create_task(bench.say("I listen."), name="notice")
    await until(lambda: bench.clock.sleeping > 0)
    assert bench.voice.spoken == []
    bench.busy = False
    bench.clock.advance(POLL_S)
    assert await saying


@pytest.mark.asyncio
@pytest.mark.parametrize("fault", ["muted", "voice"])
async def test_what_nobody_heard_is_not_counted_as_said(fault: str) -> None:
    """A muted bot says nothing, and a voice that makes no sound ends the attempt."""
    bench = Bench()
    bench.place.audible = fault != "muted"
    bench.voice.mute.add("I listen.")
    assert not await bench.say("I listen.", "I take part.")
    assert "I take part." not in bench.voice.spoken
