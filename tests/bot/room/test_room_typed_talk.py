"""What people type to the bot while a session is open. Everything is real except sound, models and Discord."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import UTC
from functools import partial

import pytest

from bot import events
from bot.brain.responder import GOES_ON, PRESS_FIRST, ModelResponder
from bot.brain.speech_output import NOT_ALOUD
from bot.brain.tools.tool import RoomTool
from bot.brain.tools.toolbox import Toolbox, reach_in
from bot.channel.port import MembershipChange, Person
from bot.conversation.prompt import TYPED
from bot.conversation.turn_recorder import TurnRecorder
from bot.conversation.typed_talk import COME_IN, MUCH_ASKED, PLACES
from bot.cost import Cost
from bot.llm.port import ChatModelError, ChatRole, FinishReason, StreamEnd
from bot.memory.recall import Recall
from bot.participation.costs import CALLS_FOR_ONE_QUESTION, HOUR_S
from bot.participation.settings import ParticipationSettings
from bot.settings import RESUME_WITHIN_S
from bot.store.search.search import SqlRecallIndex
from bot.store.search.vector_store import VectorStore
from bot.wiring.memory import quoting_factory
from bot.wiring.services import toolbox_factory
from bot.wiring.settings import BotSettings
from compaction.model import Turn, TurnKind
from compaction.payload import MessageToolCall
from config.schema import Settings
from tests.bot.brain.thinker import Thinker
from tests.bot.brain.tools.calls import for_all
from tests.bot.room.messages import Message
from tests.bot.room.room_scene import House, leave, living, silenceable, thinking
from tests.fakes.room_channel import ADA, BO
from tests.patience import settle

ABSENT, DAN = Person(9, "Cy", False), Person(8, "Dan", False)


async def test_what_is_typed_is_a_turn_and_answered_in_writing(house: House) -> None:
    """The answer knows what was said, is a turn too, and is not spoken. What was typed is in later prompts."""
    responder = thinking(house, "Under the pot", ". I am *sure*.")
    async with living(house) as (room, _):
        await house.say(BO.id, "The key is under the pot.")
        message = Message("Where is the key?")
        assert await room.take_typed(message) is None
        await settle(lambda: len(house.turns) == 3)
        assert message.answers == ["Under the pot. I am sure."]
        assert [(turn.kind, turn.answers) for turn in house.turns[1:]] == [
            (TurnKind.TYPED, None),
            (TurnKind.ASSISTANT, house.turns[1].seq),
        ]
        assert (house.voice.spoken, house.of(events.ReplySpoken)) == ([], [])
        sent = [each.content for each in responder.contexts[0].messages]
        assert any("Bo: The key is under the pot." in each for each in sent)
        assert "Ada (typed): Where is the key?" in sent[-1]
        assert any(TYPED in each for each in sent)
        await house.say(ADA.id, "Roomtone, thank you.")
        await house.reply(1)
        assert not any(TYPED in each.content for each in responder.contexts[1].messages)


async def test_a_written_answer_tells_of_this_session_alone(house: House) -> None:
    """All present were in the other one, but nobody knows who reads the answer. What is said aloud knows it."""
    recall = Recall(SqlRecallIndex(house.database, VectorStore(house.database)), house.store)
    attendance, found = house.sessions.attendance, list[str]()
    house.quoting = quoting_factory(
        BotSettings.from_schema(Settings()), recall, UTC, attendance=attendance, participation=house.participation
    )
    house.toolbox = toolbox_factory(
        recall,
        attendance=attendance,
        reach="channel",
        clock=house.clock,
        zone=UTC,
        participation=house.participation,
    )
    async with living(house) as (room, task):
        await house.say(ADA.id, "The lantern is under the stairs.")
        await leave(room, task)
    house.clock.advance(RESUME_WITHIN_S + 60.0)
    responder = thinking(house, "Wait.")
    async with living(house) as (room, _):
        await house.say(BO.id, "We buy a lantern today.")
        message = Message("Where is the lantern?")
        assert await room.take_typed(message) is None
        await settle(lambda: bool(message.answers))
        searching = asyncio.Event()
        responder.pieces, house.voice.mute = (searching, "Wait."), {"Wait."}
        await house.say(ADA.id, "Roomtone, where is the lantern?")
        await settle(lambda: len(responder.contexts) == 2)
        for context in responder.contexts:
            search = MessageToolCall("c", "memory_search", '{"query": "lantern"}')
            searched = await context.tools.run_all([search])
            found.append(f"{[each.content for each in context.messages]} {searched}")
        # Nor does what the voice cannot say.
        searching.set()
        await settle(lambda: bool(house.of(events.ReplyFinished)))
        assert not any("Wait." in each for each in house.channel.written)
    assert [("stairs" in each, "today" in each) for each in found] == [(False, True), (True, True)]


async def test_who_may_not_be_heard_or_is_not_there_is_not_recorded(house: House) -> None:
    """Who opted out gets no answer at all. Who is not in the voice channel may not read what is said there."""
    responder = thinking(house, "Hello.")
    async with living(house) as (room, _):
        await house.participation.set_opt_out(house.channel.guild_id, ADA.id, out=True)
        assert await room.take_typed(Message("I am Ada.")) is None
        assert await room.take_typed(Message("What do they say?", person=ABSENT)) == COME_IN
        await house.pass_time(1.0)
        assert (house.turns, responder.contexts) == ([], [])


async def test_who_opts_out_while_their_message_is_stored_is_not_answered(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What they typed is withheld by then."""
    record = TurnRecorder.record_typed
    responder = thinking(house, "Hello.")

    async def record_slowly(recorder: TurnRecorder, person: Person, text: str) -> Turn:
        await house.participation.set_opt_out(house.channel.guild_id, person.id, out=True)
        return await record(recorder, person, text)

    monkeypatch.setattr(TurnRecorder, "record_typed", record_slowly)
    async with living(house) as (room, _):
        assert await room.take_typed(Message("Where is the key?")) is None
        await house.pass_time(1.0)
        assert responder.contexts == []


async def test_a_silent_bot_says_why_and_remembers(house: House) -> None:
    """It is a turn all the same, as what is said to a silent bot is. So it is at the hour's ceiling."""
    thinking(house, "Hello.")
    house.participating = ParticipationSettings(max_calls_per_hour=1)
    async with living(house) as (room, _):
        await silenceable(house)
        await house.participation.silence_for_now(house.channel.guild_id, by=BO.id)
        assert "/talk" in str(await room.take_typed(Message("Hello?")))
        await house.participation.lift_silence(house.channel.guild_id, by=BO.id, manager=True)
        message = Message("Hello?")
        assert await room.take_typed(message) is None
        await settle(lambda: message.answers == ["Hello."])
        guild = await house.participation.of_guild(house.channel.guild_id)
        guild.costs.add(Cost(calls=1), now=house.clock.monotonic())
        for told in (await room.take_typed(Message("Hello?")), room.status()):
            assert "limit for an hour" in str(told)
        assert [turn.kind for turn in house.turns].count(TurnKind.TYPED) == 3


@pytest.mark.parametrize("text", ["Be quiet.", "Roomtone, sei bitte still!"])
async def test_it_is_silenced_in_writing_as_by_voice(house: House, text: str) -> None:
    """What is typed to it needs no name. What only speaks of silence is answered."""
    thinking(house, "Hello.")
    async with living(house) as (room, _):
        await silenceable(house)
        message = Message("Should I be quiet?")
        assert await room.take_typed(message) is None
        await settle(lambda: message.answers == ["Hello."])
        assert "/talk" in str(await room.take_typed(Message(text)))
        assert "/talk" in str(await room.take_typed(Message("Hello?")))


async def test_one_is_answered_at_a_time_and_few_wait(house: House) -> None:
    """One person has some places, and whoever comes too late is told so. An opt-out ends the answer in progress, and
    drops those that wait.
    """
    thinks = asyncio.Event()
    responder = thinking(house, "Yes.")
    responder.pieces = (thinks, "Yes.")
    async with living(house) as (room, _):
        await silenceable(house)
        messages = [Message(f"Question {number}?") for number in range(PLACES.most + 1)]
        for message in messages:
            if message is messages[PLACES.of_one + 1]:
                assert await room.take_typed(Message("And I?")) == PLACES.full_for_one
                message.person = messages[-1].person = BO
            assert await room.take_typed(message) is None
            await settle(lambda: len(responder.contexts) == 1)
        assert await room.take_typed(Message("And I?")) == PLACES.full
        await house.participation.set_opt_out(house.channel.guild_id, BO.id, out=True)
        thinks.set()
        last = Message("Are you there?")
        assert await room.take_typed(last) is None
        await settle(lambda: last.answers == ["Yes."])
        assert [message.answers for message in messages] == [[]] * len(messages)


async def test_one_person_cannot_use_up_the_hour(house: House) -> None:
    """Who has had their share reads that they must wait; others are answered. An hour later so are they."""
    thinking(house, "Yes.")
    house.participating = ParticipationSettings(max_calls_per_hour=2 * CALLS_FOR_ONE_QUESTION)
    async with living(house) as (room, _):
        for person, refused in ((ADA, None), (ADA, None), (ADA, MUCH_ASKED), (BO, None)):
            message = Message("Really?", person=person)
            assert await room.take_typed(message) == refused
            await settle(lambda: bool(message.answers or refused))  # noqa: B023 - it ends before the next
        house.clock.advance(HOUR_S)
        assert await room.take_typed(Message("Really?")) is None


async def test_a_failed_answer_is_one_sentence_and_no_turn(house: House) -> None:
    """So is an answer that Discord does not take."""
    responder = thinking(house)
    responder.pieces = (ChatModelError("The model is away.", retryable=True),)
    async with living(house) as (room, _):
        message, refused = Message("Hello?"), Message("Hello?", refused=True)
        await room.take_typed(message)
        await settle(lambda: message.answers == ["The model is away."])
        responder.pieces = ("Hello.",)
        await room.take_typed(refused)
        await settle(lambda: len(responder.contexts) == 2)
        await house.pass_time(0.5)
        assert [turn.kind for turn in house.turns] == [TurnKind.TYPED] * 2


END = StreamEnd(FinishReason.STOP)


def asks(text: str) -> StreamEnd:
    return StreamEnd(FinishReason.TOOL_CALLS, (MessageToolCall(text, "note", f'{{"text": "{text}"}}'),))


def furnish(house: House, model: Thinker, *, goes_on: asyncio.Event | None = None) -> list[str]:
    """Give a house a tool that asks first, or that takes until `goes_on`, and a model. Return what is noted by it. Cy
    may not know what it returns.
    """
    noted: list[str] = []

    async def note(arguments: Mapping[str, object]) -> str:
        if goes_on is not None:
            await goes_on.wait()
        noted.append(str(arguments["text"]))
        return f"Note {len(noted)} says {arguments['text']}."

    house.toolbox = lambda _here, _channel, talk: Toolbox(
        [
            RoomTool(
                "note",
                "Notes.",
                {"type": "object"},
                for_all(note, lambda each: each.user_id != ABSENT.id),
                asks=goes_on is None,
                slow=True,
            )
        ],
        talk,
        ask_for_press=house.channel.ask_for_press,
        reach=partial(reach_in, house.channel),
        reply_waits_s=0.001,
    )
    house.new_responder = lambda _: ModelResponder(model, max_output_tokens=77)
    return noted


async def test_a_press_is_done_told_aloud_and_recorded(house: House) -> None:
    """Whatever anybody says meanwhile does nothing."""
    model = Thinker((asks("milk"),), ("Hm.", END), ("It is note one.", END))
    noted = furnish(house, model)
    async with living(house):
        await house.say(ADA.id, "Roomtone, write milk down.")
        assert (await house.reply(1)).text == PRESS_FIRST
        (call,) = house.channel.calls
        assert call.request.arguments == {"text": "milk"}
        await house.say(ADA.id, "Yes, Roomtone, do it, I confirm!")
        await house.reply(2)
        assert call.press(BO) is not None
        assert noted == []
        assert call.press(ADA) is None
        await settle(lambda: call.outcome is not None)
        await house.pass_time(1.0)
        assert (await house.reply(3)).text == "It is note one."
        read = [each.content for each in model.asked[-1][0] if each.role is ChatRole.TOOL]
        assert "Note 1 says milk." in read[-1]
        assert noted == ["milk"]
        assert "Roomtone: It is note one." in house.said


@pytest.mark.parametrize(("here", "comes"), [((ADA, BO), DAN), ((BO,), DAN), ((ADA, ABSENT), DAN), ((ADA, BO), ABSENT)])
async def test_what_took_long_is_told_to_who_asked(house: House, here: tuple[Person, ...], comes: Person) -> None:
    """Aloud, once it has ended, and not if they have left meanwhile, or somebody has come who may not know it. Who
    comes while it is told ends it too.
    """
    goes_on = asyncio.Event()
    noted = furnish(house, Thinker((asks("milk"),), ("It is note one.", END)), goes_on=goes_on)
    house.voice.waits["It is note one.", 3] = is_told = asyncio.Event()
    async with living(house) as (room, _):
        await house.say(ADA.id, "Roomtone, write milk down.")
        assert (await house.reply(1)).text == GOES_ON
        await settle(lambda: bool(house.channel.calls))
        house.channel.people = list(here)
        goes_on.set()
        await settle(lambda: house.channel.calls[0].outcome is not None)
        await house.pass_time(1.0)
        house.channel.people = list({*here, comes})
        room.on_membership(MembershipChange(comes, joined=True))
        is_told.set()
        await house.pass_time(1.0)
        assert noted == ["milk"]
        assert ("Roomtone: It is note one." in house.said) is (here == (ADA, BO) and comes is DAN)
        assert (NOT_ALOUD in house.channel.written) is (ABSENT in {*here, comes})


async def test_what_was_asked_in_writing_is_told_there(house: House) -> None:
    """That it waits, and what came of it: nothing is said aloud. A silent bot writes nothing either."""
    model = Thinker((asks("milk"),), ("It is note one.", END), (asks("tea"),))
    noted = furnish(house, model)
    async with living(house) as (room, _):
        await silenceable(house)
        message = Message("Write milk down.")
        assert await room.take_typed(message) is None
        await settle(lambda: message.answers == [PRESS_FIRST])
        assert house.channel.calls[0].press(ADA) is None
        await settle(lambda: len(message.answers) == 2)
        assert message.answers[1] == "It is note one."
        assert any(TYPED in each.content for each in model.asked[-1][0])
        await settle(lambda: "Roomtone: It is note one." in house.said)
        assert await room.take_typed(message) is None
        await settle(lambda: len(message.answers) == 3)
        await house.participation.silence_for_now(house.channel.guild_id, by=BO.id)
        assert house.channel.calls[1].press(ADA) is None
        await settle(lambda: house.channel.calls[1].outcome is not None)
        await house.pass_time(1.0)
        assert noted == ["milk", "tea"]
        assert message.answers[1:] == ["It is note one.", PRESS_FIRST]
        assert house.voice.spoken == []
