"""Sentences outside replies: they wait for a reply to end, and it is known whether people heard them."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from bot.room.conversation.speaking import MOST_TRIES, POLL_S, FixedSentences
from tests.fakes.brain import FakeVoice, until
from tests.fakes.clock import FakeClock
from tests.fakes.place import FakeLink, FakePlace
from voice.speaking.playback import QUEUE_PIECES, Playback
from voice.speaking.port import synthesize_all


class Bench:
    """The sentences of a room whose connection takes sound as fast as the loop runs."""

    def __init__(self) -> None:
        self.clock, self.place, self.voice = FakeClock(), FakePlace(), FakeVoice()
        self.playback = Playback(monotonic=self.clock.monotonic)
        self.busy = False
        self.sentences = FixedSentences(self.place, self.playback, replier=cast("Any", self), clock=self.clock)

    async def say(self, *sentences: str) -> bool:
        """Say sentences while frames are sent."""
        sending = asyncio.create_task(FakeLink(self.playback, lambda _: None).pull_frames(), name="frames")
        try:
            return await self.sentences.say(sentences, self.voice)
        finally:
            sending.cancel()


@pytest.mark.parametrize(("cuts", "heard"), [(1, True), (MOST_TRIES - 1, True), (MOST_TRIES, False)])
async def test_a_sentence_that_a_reply_has_cut_is_said_again(cuts: int, *, heard: bool) -> None:
    """A reply that ends stops all sound. The sentence is said again when it is over, three times at most."""
    bench = Bench()
    saying = asyncio.create_task(bench.sentences.say(("I listen.", "I take part."), bench.voice), name="notice")
    link = FakeLink(bench.playback, lambda _: None)
    for cut in range(cuts):
        await until(lambda: bench.playback.speaking)
        link.pull(1)
        bench.busy = True
        bench.playback.stop()
        if cut < MOST_TRIES - 1:
            await until(lambda: bench.clock.sleeping > 0)
            assert not bench.playback.speaking
        bench.busy = False
        bench.clock.advance(POLL_S)
    sending = asyncio.create_task(link.pull_frames(), name="frames")
    assert await saying is heard
    sending.cancel()
    assert bench.voice.spoken == ["I listen.", "I take part."][: 1 + heard]


async def test_what_takes_too_long_stops_its_own_sound_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A reply that waits behind the sentence is played."""
    bench = Bench()
    limit = asyncio.timeout(None)
    monkeypatch.setattr(
        "bot.room.conversation.speaking.asyncio",
        SimpleNamespace(timeout=lambda _: limit, CancelledError=asyncio.CancelledError),
    )
    saying = asyncio.create_task(bench.sentences.say(("I listen.",), bench.voice), name="notice")
    await until(lambda: bench.playback.speaking)
    reply = await bench.playback.queue(await synthesize_all(bench.voice, "Yes."))
    limit.reschedule(0.0)
    assert not await saying
    assert bench.playback.pieces.waiting == 1
    FakeLink(bench.playback, lambda _: None).pull(100)
    assert (await reply).complete


@pytest.mark.parametrize("during", ["reply", "synthesis", "full queue"])
async def test_what_may_not_be_said_any_more_is_not_said(during: str) -> None:
    """It is asked again after each wait: for a reply, for the voice, and for room in the queue."""
    bench, allowed, waited = Bench(), [True], asyncio.Event()
    bench.busy = during == "reply"
    if during == "synthesis":
        bench.voice.waits["I am Heart.", 1] = waited
    others = [await bench.playback.open("A reply.") for _ in range(QUEUE_PIECES if during == "full queue" else 0)]
    saying = asyncio.create_task(
        bench.sentences.say(["I am Heart."], bench.voice, may_say=lambda: allowed[0]), name="sample"
    )
    await until(lambda: bench.clock.sleeping > 0 if during == "reply" else bool(bench.voice.spoken))
    for _ in range(10):
        await asyncio.sleep(0)
    allowed[0] = bench.busy = False
    bench.clock.advance(POLL_S)
    waited.set()
    for other in others:
        other.end()
    assert not await saying
    assert not bench.playback.speaking
    assert bench.playback.words_between(0.0, 1e9) == ""


async def test_only_what_may_not_be_said_any_more_is_stopped() -> None:
    """A sample stops in the middle, and the notice behind it is played."""
    bench, allowed = Bench(), [True]
    sample = asyncio.create_task(
        bench.sentences.say(["I am Heart."], bench.voice, may_say=lambda: allowed[0]), name="sample"
    )
    await until(lambda: bench.playback.next_frame() is not None)
    notice = asyncio.create_task(bench.say("I listen."), name="notice")
    bench.sentences.stop_forbidden()
    await asyncio.sleep(0)
    assert not sample.done()
    allowed[0] = False
    bench.sentences.stop_forbidden()
    assert not await sample
    assert await notice


@pytest.mark.parametrize("fault", ["muted", "voice"])
async def test_what_nobody_heard_is_not_counted_as_said(fault: str) -> None:
    """A muted bot says nothing, and a voice that makes no sound ends the attempt."""
    bench = Bench()
    bench.place.audible = fault != "muted"
    bench.voice.mute.add("I listen.")
    assert not await bench.say("I listen.", "I take part.")
    assert "I take part." not in bench.voice.spoken
