"""Speech-to-speech in a room: the model's conversation and the room's memory stay consistent, whatever happens to
either.
"""

from __future__ import annotations

import asyncio
from random import Random

import pytest

from bot.llm.model_calls import OPERATOR, UNMETERED
from bot.realtime.bridge import BACK, FALLEN_BACK, IT_IS_BACK, NEXT_JOIN
from bot.realtime.port import session_factory
from compaction.model import Mode, TurnKind
from compaction.payload import PartKind, coverage
from tests.bot.realtime.bridge_scene import SPEECH, BridgeDesk
from tests.fakes.clock import FakeClock
from tests.fakes.realtime import FakeRealtime
from tests.patience import settle
from tests.rehearsal.servers.realtime_client import FakeModel, served
from voice.asr.port import RecognitionRequest
from voice.realtime.port import Briefing, RealtimeToolCall
from voice.realtime.settings import RealtimeSettings


async def _no_tool(call: RealtimeToolCall) -> str:
    return ""


@pytest.mark.parametrize("seed", range(8))
async def test_every_turn_stands_in_the_instructions_or_the_conversation(room: BridgeDesk, seed: int) -> None:
    """In a long session with compactions, reconnections, unheard speech and answers, no turn is missing from the
    context.

    Every turn is either in the summary in the instructions or in the conversation.
    """
    random = Random(seed)
    for number in range(140):
        match random.randrange(9):
            case 8:
                room.session.fail("It is away.")
                await room.say(1, f"Number {number} is said to nobody.")
                room.session.restore()
            case 0:
                await room.record(TurnKind.MEMBERSHIP, "2", "Bo", f"Bo left the channel {number}.")
            case 1:
                room.session.connect()
            case 2:
                turn = await room.say(1, f"What is number {number}?")
                room.session.answers.append(f"It is {number}.")
                await room.answer(turn)
                room.bridge.report_heard(1.0, complete=random.random() < 0.7, counts=True)
                await room.record(TurnKind.ASSISTANT, "assistant", "Roomtone", f"It is {number}.")
            case _:
                await room.say(random.choice((1, 2)), f"Number {number} is the lantern of hall {number}.")
        if random.random() < 0.3:
            await room.timeline.settle()
            room.bridge.refresh()
    turn = await room.say(2, "What was that?")
    room.session.answers.append("A lantern.")
    await room.answer(turn)
    total = room.timeline.total_turns
    assert coverage(room.payload, total).missing == ()
    summarised = [high for _, high in coverage(room.payload, total).summarised]
    assert summarised == [room.timeline.cursor - 1]
    assert "Session conversation summary:" in room.session.instructions
    # The conversation itself contains every turn of the payload.
    standing = list(room.session.items.values())
    for part in room.payload:
        if part.kind.value == "turn":
            words = part.content.split(": ", 1)[-1].rstrip(")")
            assert sum(words in text or text in words for text in standing) >= 1
    assert len(standing) <= 2 * len(room.timeline.window)


@pytest.mark.parametrize(("spoken", "told"), [(("de",), "de"), (("de", "en"), None), ((), None)])
async def test_the_endpoint_is_told_what_everybody_speaks(spoken: tuple[str, ...], told: str | None) -> None:
    """A server's only language is sent to the endpoint, so that a lone 'mm-hm' is not transcribed in another one."""
    async with served(FakeModel("ja")) as server:
        settings = RealtimeSettings.model_validate({"model": "gpt-realtime", "base_url": server.base_url})
        clock = FakeClock()
        _, run = session_factory(settings, api_key="k", clock=clock, meter=UNMETERED)(
            lambda: Briefing("Be kind.", languages=spoken), lambda news: None, _no_tool, OPERATOR
        )
        living = asyncio.create_task(run(), name="session-under-test")
        await settle(lambda: bool(server.of("session.update")))
        living.cancel()
        await asyncio.gather(living, return_exceptions=True)
        (update,) = server.of("session.update")
    assert update["session"]["audio"]["input"]["transcription"].get("language") == told


async def test_when_it_fails_the_people_are_told_and_when_it_is_back(room: BridgeDesk) -> None:
    """A failure and the recovery are each written into the channel. After it, the model gets the turns that
    it missed.
    """
    assert room.bridge.responder_name == "the speech-to-speech model gpt-realtime"
    running = asyncio.create_task(room.bridge.run(), name="bridge-under-test")
    room.session.fail("It is overloaded.")
    await settle(lambda: len(room.written) == 1)
    assert room.written == [FALLEN_BACK.format(mind="what I heard", when=IT_IS_BACK, why="It is overloaded.")]
    assert not room.bridge.usable
    assert room.bridge.responder_name == "what I heard"
    turn = await room.say(1, "who said that")
    assert turn.parts[0].text == "who said that"
    await room.record(TurnKind.ASSISTANT, "assistant", "Roomtone", "Bo did.")
    assert room.session.items == {}
    room.session.restore()
    await settle(lambda: len(room.written) == 2)
    assert room.written[1] == BACK
    assert [text.rpartition(": ")[2] for text in room.session.items.values()] == ["who said that", "Bo did."]
    assert room.bridge.responder_name == "the speech-to-speech model gpt-realtime"
    room.over.set()
    await running


async def test_what_is_said_while_a_service_comes_back_stands_before_the_question(room: BridgeDesk) -> None:
    """A turn may be recorded after the new conversation was begun, and before the service has accepted it."""
    room.session.answers = ["Ada."]
    room.session.fail("It is overloaded.")
    room.session.connect()
    await room.record(TurnKind.SPEECH, "2", "Bo", "I am Bo")
    room.session.accept()
    await room.answer(await room.say(1, "who said that"))
    told = [text.split(": ", 1)[-1] for text in room.session.items.values()]
    assert told == ["I am Bo", "Ada speaks:", "who said that", "Ada."]


async def test_when_somebody_has_to_mend_it_the_people_are_told_so(room: BridgeDesk) -> None:
    """After a permanent failure the session is not tried again before the next join, and the channel gets a message."""
    running = asyncio.create_task(room.bridge.run(), name="bridge-under-test")
    room.session.fail("The account has no quota left.", lasting=True)
    room.over.set()
    await running
    said = FALLEN_BACK.format(mind="what I heard", when=NEXT_JOIN, why="The account has no quota left.")
    assert room.written == [said]
    room.recogniser.texts.append("own")
    assert (await room.bridge.recognise(RecognitionRequest(SPEECH, speaker_id=1))).text == "own"


async def test_what_holds_on_the_server_holds_from_the_next_answer_on(room: BridgeDesk) -> None:
    """A changed persona applies from the next answer on; instructions for one answer apply only to that answer."""
    turn = await room.say(1, "who are you")
    for persona, may_skip in (("You are a dry old innkeeper.", True), ("You are a pirate.", False)):
        room.prompt.guild = persona
        room.session.answers.append("I am Roomtone")
        await room.answer(turn, doubtful=may_skip)
        assert f"(the rules above hold all the same):\n{persona}" in room.session.instructions
        assert ("About your next answer:\nBe quick." in room.session.instructions) is may_skip
    assert "innkeeper" not in room.session.instructions


async def test_what_holds_on_the_server_is_known_from_the_start(room: BridgeDesk) -> None:
    """The first conversation begins with the server's instructions."""
    room.prompt.guild = "You are a pirate."
    begun: list[str] = []

    async def live(session: FakeRealtime) -> None:
        session.connect()
        begun.append(session.instructions)

    room.lives = live
    await room.bridge.run()
    assert "You are a pirate." in begun[0]


async def test_the_rolling_mode_may_be_chosen_in_the_middle(room: BridgeDesk) -> None:
    """In mode rolling, the oldest turns are replaced in the conversation by one note about them."""
    for number in range(30):
        await room.say(1, f"Number {number} is the lantern of hall {number}.")
    await room.timeline.set_mode(Mode.ROLLING)
    for number in range(90):
        turn = await room.say(2, f"Number {number} is {'a very long story ' * 25}.")
    room.session.answers.append("A lantern.")
    await room.answer(turn)
    found = coverage(room.payload, room.timeline.total_turns)
    assert (found.missing, found.summarised) == ((), ())
    assert found.evicted
    standing = list(room.session.items.values())
    assert sum("messages evicted" in text for text in standing) == 1
    kept = [part for part in room.payload if part.kind is PartKind.TURN]
    assert len(standing) == 2 * len(kept) + 2
