"""A preemptive reply is used only for the question for which it was begun. Otherwise it is discarded
without a trace.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from structlog.testing import capture_logs

from bot.brain.context import ModelContext
from bot.brain.reply import Question
from bot.brain.tools.tool import NOBODY, RoomTool, anybody
from bot.brain.tools.toolbox import Toolbox
from bot.llm.port import ChatModelError
from bot.read_ahead import ReadAhead
from bot.room.conversation.reply_source import ReplySource, RoomSynthesizer, reads_finished
from compaction.context.build import SessionContext
from compaction.errors import StoreError
from compaction.model import Mode, Seq, Turn, TurnKind, TurnPart
from compaction.payload import MessageToolCall
from tests.bot.brain.tools.calls import told
from tests.fakes.brain import FakeVoice, ScriptedResponder, until
from tests.fakes.clock import FakeClock
from tests.patience import PATIENCE_S
from voice.cancellation import is_being_cancelled
from voice.speaking.port import synthesize_all

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Mapping

PART = TurnPart("1", "Ada", "Who brings the lantern?")
TURN = Turn(Seq(7), TurnKind.SPEECH, 10.0, 11.0, (PART,))
ASKED = Question(TURN, "u1", 1.0, "1")


class Desk:
    """A preemptive reply with scripted contexts and words."""

    def __init__(self, *pieces: str | BaseException | asyncio.Event) -> None:
        self.responder = ScriptedResponder(*pieces)
        self.built: list[Question] = []
        self.error: Exception | None = None
        self.called: list[str] = []
        tool = RoomTool("look", "Looks.", {"type": "object"}, self._look, asks=False, permits=anybody)
        self.toolbox = Toolbox([tool])
        self.voice = FakeVoice()
        self.speech = RoomSynthesizer(self.voice)
        self.preemptive = ReplySource(
            build_context=self._context,
            responder=self.responder,
            speech=self.speech,
            new_reader=lambda _: lambda sentence: None if "***" in sentence else sentence.replace("Bo", "Beau"),
            clock=FakeClock(),
        )

    async def _look(self, arguments: Mapping[str, object]) -> str:
        self.called.append("look")
        return "a map"

    async def _context(self, question: Question) -> ModelContext:
        self.built.append(question)
        if self.error is not None:
            raise self.error
        session = SessionContext(Mode.SUMMARY, 10, Seq(0), None, 0, None, None, (), (), question.turn, 1000)
        return ModelContext(
            session=session, current=question.turn, parts=(), messages=(), now=0.0, tools=self.toolbox.for_asker(NOBODY)
        )

    async def answer(self, question: Question) -> list[str]:
        return [piece async for piece in await self.preemptive.begin(question)]

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with asyncio.TaskGroup() as tasks:
            run = tasks.create_task(self.preemptive.run(), name="preemptive-reply-under-test")
            await asyncio.sleep(0)
            yield
            run.cancel()


async def test_what_was_thought_ahead_is_the_answer() -> None:
    """If only the turn's times differ, the answer that was begun early is used and the model is asked once."""
    desk = Desk("Bo ", "brings it.")
    async with desk.running():
        desk.preemptive.start(ASKED)
        desk.preemptive.start(ASKED)
        await until(lambda: bool(desk.responder.contexts))
        with capture_logs() as logs:
            assert await desk.answer(replace(ASKED, turn=replace(TURN, ended_at=11.5))) == ["Bo ", "brings it."]
        assert [line["event"] for line in logs] == ["preemptive_reply_used"]
        assert (len(desk.built), len(desk.responder.contexts)) == (1, 1)


@pytest.mark.parametrize(
    "asked",
    [
        replace(ASKED, utterance_id="u2"),
        replace(ASKED, turn=replace(TURN, seq=Seq(8))),
        replace(ASKED, turn=replace(TURN, parts=(replace(PART, text="Who brings the lantern and the rope?"),))),
        replace(ASKED, turn=replace(TURN, parts=(PART, replace(PART, speaker_id="2", speaker="Bo", text="I do.")))),
        replace(ASKED, asker_id="2"),
        replace(ASKED, may_skip=True),
        replace(ASKED, language="de"),
    ],
)
async def test_another_question_is_thought_anew(asked: Question) -> None:
    """If the words, the turn, the person or the language to answer in differ, the question is answered anew and the
    first attempt is not used.
    """
    never = asyncio.Event()
    desk = Desk(never)
    async with desk.running():
        desk.preemptive.start(ASKED)
        await until(lambda: bool(desk.responder.contexts))
        desk.responder.pieces = ("Anew.",)
        assert await desk.answer(asked) == ["Anew."]
        assert desk.built == [ASKED, asked]


async def test_who_goes_on_has_it_thrown_away() -> None:
    """If a person goes on speaking, only the reply to that person is discarded, and its generation ends at once."""
    never = asyncio.Event()
    desk = Desk(never)
    async with desk.running():
        desk.preemptive.start(ASKED)
        await until(lambda: bool(desk.responder.contexts))
        with capture_logs() as logs:
            desk.preemptive.discard_for("u9")
            desk.preemptive.discard_for("u1")
            desk.preemptive.discard_for("u1")
        assert [(line["event"], line["reason"]) for line in logs] == [("preemptive_reply_discarded", "went_on")]
        desk.responder.pieces = ("Anew.",)
        assert await desk.answer(ASKED) == ["Anew."]
        assert len(desk.built) == 2


async def test_the_first_sentence_is_synthesised_ahead() -> None:
    """The voice reads the first sentence that is spoken while the model goes on, and reads it once."""
    thinking = asyncio.Event()
    desk = Desk("***\n", "Bo brings it. ", thinking, "He has two.")
    async with desk.running():
        desk.preemptive.start(ASKED)
        await until(lambda: bool(desk.voice.spoken))
        first = "Beau brings it."
        assert desk.voice.spoken == [first]
        thinking.set()
        with capture_logs() as logs:
            await desk.answer(ASKED)
        assert (logs[0]["event"], logs[0]["synthesised_chars"]) == ("preemptive_reply_used", len(first))
        assert [sound async for sound in desk.speech.stream(first)]
        assert desk.voice.spoken == [first]


@pytest.mark.parametrize("text", ["SKIP", "SKIP. They talk.", "***"])
async def test_nothing_is_synthesised_of_what_is_not_spoken(text: str) -> None:
    """A reply that the model skips, and a sentence that must not be spoken, cost the voice nothing."""
    desk = Desk(text)
    asked = replace(ASKED, may_skip=True)
    async with desk.running():
        desk.preemptive.start(asked)
        assert await desk.answer(asked) == [text]
        assert desk.voice.spoken == []


async def test_tools_wait_for_the_question() -> None:
    """No tool runs before the question is certain."""
    desk = Desk("Hm.")
    async with desk.running():
        desk.preemptive.start(ASKED)
        await until(lambda: bool(desk.responder.contexts))
        tools = desk.responder.contexts[0].tools
        assert tools is not None
        calling = asyncio.create_task(told(tools, MessageToolCall("c", "look", "{}")), name="calling")
        for _ in range(10):
            await asyncio.sleep(0)
        assert desk.called == []
        await desk.answer(ASKED)
        assert "a map" in await calling


async def test_failures_are_those_of_the_answer() -> None:
    """A failure of the model is raised when the answer is used. A context that could not be built is built again."""
    desk = Desk("Bo ", ChatModelError("It broke. Try again.", retryable=True))
    async with desk.running():
        desk.preemptive.start(ASKED)
        await until(lambda: bool(desk.responder.contexts))
        with pytest.raises(ChatModelError, match="broke"):
            await desk.answer(ASKED)
        desk.error = StoreError("The disk is full. Make room.")
        desk.preemptive.start(ASKED)
        await until(lambda: len(desk.built) == 2)
        with pytest.raises(StoreError):
            await desk.answer(ASKED)
        desk.preemptive.start(ASKED)
        await until(lambda: len(desk.built) == 4)
        desk.error = None
        desk.responder.pieces = ("Yes.",)
        assert await desk.answer(ASKED) == ["Yes."]


@pytest.mark.parametrize(
    ("text", "finished"),
    [
        ("Who brings it?", True),
        ("Bo does.", True),
        ("He said “no.”", True),
        ("Well...", False),
        ("And then…", False),
        ("Bo, Ada,", False),
        ("so I", False),
        (".", False),
        ("", False),
    ],
)
def test_what_reads_finished(text: str, finished: bool) -> None:
    """A text reads as finished if it is a complete sentence that does not trail off."""
    assert reads_finished(text) is finished


async def test_what_was_begun_is_what_is_heard() -> None:
    """The sound is the same as without beginning ahead, and the voice speaks the sentence once."""
    voice = FakeVoice()
    ahead = RoomSynthesizer(voice)
    plain = await synthesize_all(FakeVoice(), "Bo brings it.")
    async with asyncio.TaskGroup() as tasks:
        ahead.begin("Bo brings it.", tasks)
        await until(lambda: bool(voice.spoken))
        assert np.array_equal((await synthesize_all(ahead, "Bo brings it.")).pcm, plain.pcm)
    assert voice.spoken == ["Bo brings it."]


async def test_another_sentence_is_synthesised_as_usual() -> None:
    """Another sentence does not use what was begun, and the begun one stays for when it is asked for."""
    voice = FakeVoice()
    ahead = RoomSynthesizer(voice)
    async with asyncio.TaskGroup() as tasks:
        ahead.begin("Bo brings it.", tasks)
        await until(lambda: bool(voice.spoken))
        await synthesize_all(ahead, "No.")
        await synthesize_all(ahead, "Bo brings it.")
        await synthesize_all(ahead, "Bo brings it.")
    assert voice.spoken == ["Bo brings it.", "No.", "Bo brings it."]


class Stream:
    """Yields its steps in order; one that is an exception is raised, and one that is an event is waited for."""

    def __init__(self, *steps: str | BaseException | asyncio.Event) -> None:
        self._steps = steps
        self.read = 0
        self.over = False

    async def items(self) -> AsyncGenerator[str, None]:
        try:
            for step in self._steps:
                if isinstance(step, BaseException):
                    raise step
                if isinstance(step, asyncio.Event):
                    await step.wait()
                else:
                    self.read += 1
                    yield step
        finally:
            self.over = True


class BrokenOffError(Exception):
    """The failure of a stream that waited for something cancelled."""


def broken_off(error: asyncio.CancelledError) -> BrokenOffError:
    if is_being_cancelled():
        raise error
    return BrokenOffError()


def ahead(stream: Stream, tasks: asyncio.TaskGroup) -> ReadAhead[str]:
    return ReadAhead(stream.items(), tasks, name="ahead", broken_off=broken_off)


@pytest.mark.parametrize(
    ("failure", "told"), [(ValueError("broken"), ValueError), (asyncio.CancelledError(), BrokenOffError)]
)
async def test_a_failure_comes_in_its_place(failure: BaseException, told: type[Exception]) -> None:
    """Also if something that the stream waits for is cancelled: it has not come to its end."""
    async with asyncio.TaskGroup() as tasks, asyncio.timeout(PATIENCE_S):
        taken = ahead(Stream("a", failure, "b"), tasks).take()
        assert await anext(taken) == "a"
        with pytest.raises(told):
            await anext(taken)


@pytest.mark.parametrize("failure", [ValueError("broken"), asyncio.CancelledError()])
async def test_a_failure_that_nobody_takes_ends_nothing(failure: BaseException) -> None:
    """The group goes on with its other tasks."""
    stream = Stream("a", failure)
    async with asyncio.TaskGroup() as tasks:
        ahead(stream, tasks)
        await until(lambda: stream.over)
        other = tasks.create_task(asyncio.sleep(0, "goes on"))
    assert other.result() == "goes on"
