"""A reply to speech that may go on is held before its first sound. It is the reply once the question is certain, and
leaves no trace if the person goes on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace

import pytest

from bot.brain.question import Spoken
from bot.brain.replier import LOOK_EVERY_S
from bot.brain.reply import Reply
from bot.brain.reply_life import ReplyStage, Stop
from bot.brain.tools.tool import RoomTool, anybody
from bot.brain.tools.toolbox import Toolbox
from bot.llm.port import ChatModelError
from compaction.errors import StoreError
from compaction.model import Seq, Turn, TurnKind, TurnPart
from compaction.payload import MessageToolCall
from tests.bot.brain.replying import ReplyBench
from tests.bot.brain.tools.calls import for_all, told
from tests.fakes.brain import ScriptedResponder, until
from tests.fakes.questions import asked as asked_about
from tests.fakes.questions import perhaps
from tests.patience import PATIENCE_S
from voice.listening.pause import PauseVerdict
from voice.speaking.barge_in import GOING_ON_S

PART = TurnPart("1", "Ada", "Who brings the lantern?")
TURN = Turn(Seq(7), TurnKind.SPEECH, 10.0, 11.0, (PART,))
ASKED = asked_about(TURN)
# The same turn as it is recorded.
RECORDED = replace(ASKED, turn=replace(TURN, ended_at=11.5))
OTHER = replace(ASKED, utterance_id="u2")


class HeldRoom(ReplyBench):
    """A replier whose model may call a tool, and people who hear what is played while `listening`."""

    def __init__(self, *pieces: str | BaseException | asyncio.Event) -> None:
        super().__init__(ScriptedResponder(*pieces), Bo="Beau")
        self.called: list[str] = []
        tool = RoomTool("look", "Looks.", {"type": "object"}, for_all(self._look), asks=False, permits=anybody)
        self.toolbox = Toolbox([tool])

    async def _look(self, arguments: Mapping[str, object]) -> str:
        self.called.append("look")
        return "a map"

    async def until_ready(self, utterance_id: str = "u1") -> None:
        await until(lambda: self.replier.stage_of(utterance_id) is ReplyStage.READY)

    async def heard(self) -> Reply:
        """Return the next reply that is over, after people have listened to it."""
        count = len(self.replies)
        async with self.listener.listening():
            await until(lambda: len(self.replies) > count)
        return self.replies[-1]


async def test_what_was_begun_is_the_reply() -> None:
    """The model is asked once, the first sentence is synthesised once, and nothing is played before the release."""
    room = HeldRoom("Bo brings ", "it. He ", "has two.")
    async with room.running() as replier:
        assert replier.hold(ASKED)
        assert replier.hold(RECORDED)
        await room.until_ready()
        room.listener.pull(10)
        assert (room.listener.frames, replier.busy, room.voice.spoken) == (0, False, ["Beau brings it."])
        assert replier.release() is PauseVerdict.SOUNDING
        assert (replier.busy, replier.stage_of("u1")) == (True, ReplyStage.RELEASED)
        room.listener.pull(1)
        assert replier.stage_of("u1") is ReplyStage.HEARD
        replier.ask(RECORDED)
        assert replier.stage_of("u1") is None
        reply = await room.heard()
        assert (reply.question, reply.text) == (RECORDED, "Bo brings it. He has two.")
        assert (len(room.built), len(room.responder.contexts)) == (1, 1)


async def test_a_question_that_is_certain_first_releases_its_reply() -> None:
    """The long silence may end the speech before the reply is ready."""
    thinking = asyncio.Event()
    room = HeldRoom(thinking, "Bo brings it.")
    async with room.running() as replier:
        replier.hold(ASKED)
        await until(lambda: bool(room.responder.contexts))
        assert replier.release() is PauseVerdict.HELD
        replier.ask(RECORDED)
        thinking.set()
        assert (await room.heard()).text == "Bo brings it."
        assert len(room.built) == 1


@pytest.mark.parametrize(
    "asked",
    [
        OTHER,
        replace(ASKED, turn=replace(TURN, seq=Seq(8))),
        replace(ASKED, turn=replace(TURN, parts=(replace(PART, text="Who brings the lantern and the rope?"),))),
        replace(ASKED, turn=replace(TURN, parts=(PART, replace(PART, speaker_id="2", speaker="Bo", text="I do.")))),
        replace(ASKED, asker_id=2),
        perhaps(ASKED),
        replace(ASKED, language="de"),
    ],
)
async def test_another_question_is_answered_anew(asked: Spoken) -> None:
    """If the words, the turn, the person or the language to answer in differ, the reply that was begun is not used."""
    room = HeldRoom(asyncio.Event())
    async with room.running() as replier:
        replier.hold(ASKED)
        await until(lambda: bool(room.responder.contexts))
        room.responder.pieces = ("Anew.",)
        replier.ask(asked)
        assert (await room.heard()).text == "Anew."
        assert room.built == [ASKED, asked]


@pytest.mark.parametrize("sounding", [False, True])
async def test_who_goes_on_has_it_withdrawn(sounding: bool) -> None:
    """Before it is a turn nothing of it counts, also if a frame was on its way; another person's reply stays."""
    room = HeldRoom("Bo brings it. He has two.")
    async with room.running() as replier:
        replier.hold(ASKED)
        await room.until_ready()
        if sounding:
            replier.release()
            room.listener.pull(1)
        replier.withdraw("went_on", utterance_id="u9")
        assert replier.stage_of("u1") is not None
        replier.withdraw("went_on", utterance_id="u1")
        await until(lambda: not replier.busy)
        assert (replier.stage_of("u1"), room.replies, room.playback.speaking) == (None, [], False)
        replier.ask(OTHER)
        assert (await room.heard()).question is OTHER
        assert len(room.built) == 2


async def test_one_reply_is_held_and_the_first_comes_first() -> None:
    """Two ask at the same time: the second waits for its end, and what the first goes on to say replaces the first."""
    room = HeldRoom("Yes.")
    async with room.running() as replier:
        assert replier.hold(ASKED)
        assert not replier.hold(OTHER)
        await room.until_ready()
        assert replier.hold(replace(ASKED, turn=replace(TURN, seq=Seq(8))))
        await room.until_ready()
        replier.release()
        assert not replier.hold(OTHER)
        assert len(room.built) == 2
        replier.ask(ASKED)
        replier.ask(OTHER)
        async with room.listener.listening():
            await until(lambda: len(room.replies) == 2)
        assert [reply.spoken and reply.spoken.utterance_id for reply in room.replies] == ["u1", "u2"]


@pytest.mark.parametrize("text", ["SKIP", "SKIP. They talk.", "***"])
async def test_nothing_is_synthesised_of_what_is_not_spoken(text: str) -> None:
    """A reply that the model skips is never ready: it ends no speech, and is not asked for again."""
    room = HeldRoom(text)
    asked = perhaps(ASKED)
    async with room.running() as replier:
        replier.hold(asked)
        await until(lambda: bool(room.responder.contexts))
        replier.ask(asked)
        reply = await room.heard()
        assert (room.voice.spoken, reply.text, len(room.built)) == ([], "", 1)


async def test_tools_wait_for_the_question() -> None:
    """No tool runs before the question is certain. A reply that needs one is ready, and has no sound yet."""
    room = HeldRoom(asyncio.Event())
    async with room.running() as replier:
        replier.hold(ASKED)
        await until(lambda: bool(room.responder.contexts))
        tools = room.responder.contexts[0].tools
        calling = asyncio.create_task(told(tools, MessageToolCall("c", "look", "{}")), name="calling")
        await room.until_ready()
        assert room.called == []
        assert replier.release() is PauseVerdict.DUE
        assert "a map" in await calling
        replier.ask(RECORDED)
        replier.stop_current(Stop.INTERRUPTED)


@pytest.mark.parametrize("goes_on", [False, True])
async def test_what_acts_outside_waits_until_the_question_is_over(goes_on: bool) -> None:
    """Its asker might go on, and then nothing has been done for what they have not asked."""
    room = HeldRoom(asyncio.Event())
    asked = replace(ASKED, ended_at=room.clock.monotonic())
    async with room.running() as replier:
        replier.hold(asked)
        await until(lambda: bool(room.responder.contexts))
        calls = room.responder.contexts[0].tools
        calling = asyncio.create_task(told(calls, MessageToolCall("c", "look", "{}")), name="calling")
        await room.until_ready()
        replier.release()
        replier.ask(replace(RECORDED, ended_at=asked.ended_at))
        await room.clock.until_somebody_sleeps()
        assert room.called == []
        if goes_on:
            replier.stop_current(Stop.WENT_ON)
        room.clock.advance(GOING_ON_S + LOOK_EVERY_S)
        if goes_on:
            await until(lambda: not replier.busy)
            assert (room.called, len(replier.unanswered)) == ([], 1)
            calling.cancel()
        else:
            assert "a map" in await calling
            replier.stop_current(Stop.INTERRUPTED)


async def test_a_reply_that_fails_before_its_release_is_told_then() -> None:
    """The channel reads why, once the question is certain, and the context is not built again."""
    room = HeldRoom("Yes.")
    room.error = StoreError("The disk is full. Make room.")
    async with room.running() as replier:
        replier.hold(ASKED)
        await room.until_ready()
        assert replier.release() is PauseVerdict.DUE
        assert room.replies == []
        replier.ask(RECORDED)
        reply = await room.heard()
        assert (reply.failure is not None, len(room.built)) == (True, 1)
        room.error = None
        room.responder.pieces = (ChatModelError("It broke. Try again.", retryable=True),)
        replier.hold(OTHER)
        await room.until_ready("u2")
        replier.ask(OTHER)
        assert (await room.heard()).failure is not None


async def test_memory_that_changes_withdraws_what_was_made_of_it() -> None:
    """The next hold begins anew. What sounds already is stopped like each other reply, and recorded."""
    room = HeldRoom("Bo brings it.")
    async with room.running() as replier:
        replier.hold(ASKED)
        await room.until_ready()
        replier.cancel_all("memory_changed")
        assert replier.stage_of("u1") is None
        replier.hold(ASKED)
        await room.until_ready()
        replier.release()
        room.listener.pull(1)
        replier.cancel_all("memory_changed")
        replier.ask(RECORDED)
        reply = await room.heard()
        assert (reply.interrupted, len(room.built)) == (True, 2)
        await replier.shut_down(within_s=PATIENCE_S)
        assert not replier.hold(OTHER)
