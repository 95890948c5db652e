"""Replies are spoken in the language of whom they answer, also what is synthesised before they are certain."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import cast

import pytest

from bot.background_task import owned_task
from bot.brain.reply_life import Stop
from bot.conversation.speaking import MOST_TRIES, POLL_S, SAY_TIMEOUT_S, FixedSentences
from bot.participation.participation import Participation
from compaction.model import Seq, Turn, TurnKind, TurnPart
from tests.bot.brain.replying import FIRST, SECOND, ReplyBench
from tests.fakes.brain import ScriptedResponder, until
from tests.fakes.clock import FakeClock
from tests.fakes.loop_time import pass_loop_time
from tests.fakes.questions import asked
from tests.fakes.room_channel import FakeRoomChannel, FakeVoiceConnection
from voice.speaking.playback import QUEUE_PIECES
from voice.speaking.port import synthesize_all

TURN = Turn(Seq(7), TurnKind.SPEECH, 10.0, 11.0, (TurnPart("1", "Ada", "Was kostet die Laterne?"),))


async def test_a_reply_that_is_begun_early_is_spoken_in_its_language() -> None:
    """After an answer in English the first sentence of a German one has a German voice and German words, although it is
    synthesised before the answer begins.
    """
    bench = ReplyBench(ScriptedResponder("Die kostet 5 €. Mehr weiß ich nicht."))
    bench.voice.prefer("en")
    async with bench.running():
        bench.replier.hold(replace(asked(TURN), language="de"))
        await until(lambda: bool(bench.voice.spoken))
    assert (bench.voice.language, bench.voice.spoken) == ("de", ["Die kostet 5 Euro."])


class SpeakingBench:
    """The sentences of a room, and its replies, for which the model thinks until they are stopped."""

    def __init__(self) -> None:
        self.clock, self.channel = FakeClock(), FakeRoomChannel()
        self.model = ScriptedResponder(asyncio.Event())
        self.replies = ReplyBench(self.model)
        self.replier, self.playback, self.voice = self.replies.replier, self.replies.playback, self.replies.voice
        self.silenced = False
        self.sentences = FixedSentences(
            self.channel, self.playback, cast("Participation", self), replier=self.replier, clock=self.clock
        )

    async def say(self, *sentences: str) -> bool:
        """Say sentences while frames are sent."""
        async with owned_task(FakeVoiceConnection(self.playback, lambda _: None).pull_frames(), name="frames"):
            return await self.sentences.say(sentences, self.voice)

    async def begin_reply(self) -> None:
        before = len(self.model.contexts)
        self.replier.ask(FIRST)
        await until(lambda: len(self.model.contexts) > before)

    async def end_replies(self) -> None:
        self.replier.cancel_all("silenced")
        await until(lambda: not self.replier.busy)
        self.clock.advance(POLL_S)


@pytest.mark.parametrize(("cuts", "heard"), [(1, True), (MOST_TRIES - 1, True), (MOST_TRIES, False)])
async def test_a_sentence_that_a_reply_has_cut_is_said_again(cuts: int, *, heard: bool) -> None:
    """A reply that ends stops all sound. The sentence is said again when it is over, three times at most."""
    bench = SpeakingBench()
    connection = FakeVoiceConnection(bench.playback, lambda _: None)
    async with bench.replies.running():
        saying = asyncio.create_task(bench.sentences.say(("I listen.", "I take part."), bench.voice), name="notice")
        for cut in range(cuts):
            await until(lambda: bench.playback.speaking)
            connection.pull(1)
            await bench.begin_reply()
            bench.replier.ask(SECOND)
            bench.replier.stop_current(Stop.INTERRUPTED)
            if cut < MOST_TRIES - 1:
                await until(lambda: bench.clock.sleeping > 0)
                assert not bench.playback.speaking
            await bench.end_replies()
        sending = asyncio.create_task(connection.pull_frames(), name="frames")
        assert await saying is heard
        sending.cancel()
    assert bench.voice.spoken == ["I listen.", "I take part."][: 1 + heard]


async def test_what_takes_too_long_stops_its_own_sound_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A reply that waits behind the sentence is played."""
    bench = SpeakingBench()
    saying = asyncio.create_task(bench.sentences.say(("I listen.",), bench.voice), name="notice")
    await until(lambda: bench.playback.speaking)
    reply = await bench.playback.queue(await synthesize_all(bench.voice, "Yes."))
    pass_loop_time(monkeypatch, SAY_TIMEOUT_S)
    assert not await saying
    assert bench.playback.pieces.waiting == 1
    FakeVoiceConnection(bench.playback, lambda _: None).pull(100)
    assert (await reply).complete


@pytest.mark.parametrize("during", ["reply", "synthesis", "full queue"])
async def test_what_may_not_be_said_any_more_is_not_said(during: str) -> None:
    """It is asked again after each wait: for a reply, for the voice, and for room in the queue."""
    bench, waited = SpeakingBench(), asyncio.Event()
    async with bench.replies.running():
        if during == "reply":
            await bench.begin_reply()
        elif during == "synthesis":
            bench.voice.waits["I am Heart.", 1] = waited
        others = [await bench.playback.open("A reply.") for _ in range(QUEUE_PIECES if during == "full queue" else 0)]
        saying = asyncio.create_task(bench.sentences.say(["I am Heart."], bench.voice, optional=True), name="sample")
        await until(lambda: bench.clock.sleeping > 0 if during == "reply" else bool(bench.voice.spoken))
        for _ in range(10):
            await asyncio.sleep(0)
        bench.silenced = True
        await bench.end_replies()
        waited.set()
        for other in others:
            other.end()
        assert not await saying
    assert not bench.playback.speaking
    assert bench.playback.words_between(0.0, 1e9) == ""


async def test_silence_stops_what_nobody_needs() -> None:
    """A sample stops in the middle, and the notice behind it is played."""
    bench = SpeakingBench()
    sample = asyncio.create_task(bench.sentences.say(["I am Heart."], bench.voice, optional=True), name="sample")
    await until(lambda: bench.playback.next_frame() is not None)
    notice = asyncio.create_task(bench.say("I listen."), name="notice")
    await asyncio.sleep(0)
    assert not sample.done()
    bench.silenced = True
    bench.sentences.fall_silent()
    assert not await sample
    assert await notice


@pytest.mark.parametrize("fault", ["muted", "voice"])
async def test_what_nobody_heard_is_not_counted_as_said(fault: str) -> None:
    """A muted bot says nothing, and a voice that makes no sound ends the attempt."""
    bench = SpeakingBench()
    bench.channel.audible = fault != "muted"
    bench.voice.mute.add("I listen.")
    assert not await bench.say("I listen.", "I take part.")
    assert "I take part." not in bench.voice.spoken
