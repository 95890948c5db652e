"""Replies are spoken in the language of whom they answer, also what is synthesised before they are certain."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from bot.background_task import owned_task
from bot.brain.context import ModelContext
from bot.brain.question import Question, whole_turn
from bot.brain.reply import Reply
from bot.brain.tools.toolbox import Toolbox
from bot.channel.notice_queue import NoticeQueue
from bot.conversation.speaking import MOST_TRIES, POLL_S, SAY_TIMEOUT_S, FixedSentences, Speaking
from bot.server_settings import no_server_settings
from bot.texts.text import Text, verbatim
from bot.words import Words
from compaction.context.build import SessionContext
from compaction.model import Mode, Seq, Turn, TurnKind, TurnPart
from rehearsal.roomtone.written.channel import LoudnessDetector
from tests.fakes.brain import FakeVoice, ScriptedResponder, until
from tests.fakes.clock import FakeClock
from tests.fakes.loop_time import pass_loop_time
from tests.fakes.questions import asked
from tests.fakes.room_channel import FakeRoomChannel, FakeVoiceConnection
from voice.listening.listener import RoomListener
from voice.speaking.playback import QUEUE_PIECES, Playback
from voice.speaking.port import AudioChunk, synthesize_all

TURN = Turn(Seq(7), TurnKind.SPEECH, 10.0, 11.0, (TurnPart("1", "Ada", "Was kostet die Laterne?"),))


class Polyglot(FakeVoice):
    """A voice that notes in which language it says what. Implements `RoomVoice`."""

    def __init__(self) -> None:
        super().__init__()
        self.language = ""
        self.said: list[tuple[str, str]] = []

    def prefer(self, language: str) -> None:
        self.language = language

    def status(self) -> Text:
        return verbatim("")

    async def stream(self, text: str) -> AsyncGenerator[AudioChunk, None]:
        self.said.append((self.language, text))
        async for sound in super().stream(text):
            yield sound


async def context_of(question: Question) -> ModelContext:
    """Return the prompt for a question."""
    session = SessionContext(Mode.SUMMARY, 10, Seq(0), None, 0, None, None, (), (), question.turn, 1000)
    tools = Toolbox().for_asker()
    return ModelContext(
        session=session, current=question.turn, asked=whole_turn(question), parts=(), messages=(), now=0.0, tools=tools
    )


async def ignore(_: Reply) -> None:
    """Take a finished reply."""


def speaking_with(voice: Polyglot, build_context: Callable[[Question], Awaitable[ModelContext]]) -> Speaking:
    """Return the speech of a room whose model answers in German."""
    services = SimpleNamespace(
        open_voice=lambda *_: voice,
        speech=SimpleNamespace(synthesizer=voice, moderator=None),
        clock=FakeClock(),
        replies=SimpleNamespace(timeout_s=5.0),
        speaking=SimpleNamespace(pronounced_in=lambda _: {}, blocked_in=lambda _: ()),
        servers=no_server_settings(),
    )
    channel = FakeRoomChannel()
    return Speaking(
        channel,
        cast("Any", services),
        build_context=build_context,
        responder=ScriptedResponder("Die kostet 5 €. Mehr weiß ich nicht."),
        on_reply=ignore,
        notices=NoticeQueue(channel, name="notices"),
        own_names=lambda: ("Roomtone",),
        bridge=None,
        listener=RoomListener(LoudnessDetector()),
        words=Words(),
    )


async def test_a_reply_that_is_begun_early_is_spoken_in_its_language() -> None:
    """After an answer in English the first sentence of a German one has a German voice and German words, although it is
    synthesised before the answer begins.
    """
    voice = Polyglot()
    speaking = speaking_with(voice, context_of)
    voice.prefer("en")
    async with asyncio.TaskGroup() as tasks:
        run = tasks.create_task(speaking.replier.run(), name="replier-under-test")
        await asyncio.sleep(0)
        speaking.replier.hold(replace(asked(TURN), language="de"))
        await until(lambda: bool(voice.said))
        run.cancel()
    assert voice.said == [("de", "Die kostet 5 Euro.")]


class SpeakingBench:
    """The sentences of a room whose connection takes sound as fast as the loop runs."""

    def __init__(self) -> None:
        self.clock, self.channel, self.voice = FakeClock(), FakeRoomChannel(), FakeVoice()
        self.playback = Playback(monotonic=self.clock.monotonic)
        self.busy = False
        self.sentences = FixedSentences(self.channel, self.playback, replier=cast("Any", self), clock=self.clock)

    async def say(self, *sentences: str) -> bool:
        """Say sentences while frames are sent."""
        async with owned_task(FakeVoiceConnection(self.playback, lambda _: None).pull_frames(), name="frames"):
            return await self.sentences.say(sentences, self.voice)


@pytest.mark.parametrize(("cuts", "heard"), [(1, True), (MOST_TRIES - 1, True), (MOST_TRIES, False)])
async def test_a_sentence_that_a_reply_has_cut_is_said_again(cuts: int, *, heard: bool) -> None:
    """A reply that ends stops all sound. The sentence is said again when it is over, three times at most."""
    bench = SpeakingBench()
    saying = asyncio.create_task(bench.sentences.say(("I listen.", "I take part."), bench.voice), name="notice")
    connection = FakeVoiceConnection(bench.playback, lambda _: None)
    for cut in range(cuts):
        await until(lambda: bench.playback.speaking)
        connection.pull(1)
        bench.busy = True
        bench.playback.stop()
        if cut < MOST_TRIES - 1:
            await until(lambda: bench.clock.sleeping > 0)
            assert not bench.playback.speaking
        bench.busy = False
        bench.clock.advance(POLL_S)
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
    bench, allowed, waited = SpeakingBench(), [True], asyncio.Event()
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
    bench, allowed = SpeakingBench(), [True]
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
    bench = SpeakingBench()
    bench.channel.audible = fault != "muted"
    bench.voice.mute.add("I listen.")
    assert not await bench.say("I listen.", "I take part.")
    assert "I take part." not in bench.voice.spoken
