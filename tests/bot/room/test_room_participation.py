"""Who is answered in a room, who is not, and how the bot is silenced. Everything is real except sound, models and
Discord.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from structlog.testing import capture_logs

from bot import events
from bot.brain.silence import SILENT_MINUTES
from bot.brain.tools.exchanges import ToolExchange
from bot.brain.tools.toolbox import Toolbox
from bot.channel.port import MembershipChange, Person
from bot.llm.port import ChatModelError
from bot.participation.notices import silenced_for
from bot.participation.participation import CHECK_QUIET_S
from bot.participation.settings import ParticipationSettings
from bot.room.conversation.membership import TURN_EVERY_S
from bot.room.room_check import CHECK_ROOM_S
from bot.server_settings import ServerSettings
from compaction.model import TurnKind
from compaction.payload import MessageToolCall
from tests.bot.room.room_scene import TICK_S, a_house, living, settle
from tests.fakes.brain import ScriptedResponder
from tests.fakes.hearing import speech
from tests.fakes.place import ADA, BO, OTHER_BOT

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from bot.brain.context import ModelContext
    from tests.bot.room.room_scene import House

CY = Person(4, "Cy", False)


def thinking(house: House, *pieces: str | Exception) -> ScriptedResponder:
    """Give the rooms a model that answers with `pieces` and may skip."""
    responder = ScriptedResponder(*pieces)
    house.new_responder = lambda: responder
    house.can_skip = True
    return responder


async def silenceable(house: House) -> None:
    """Wait until the guild's participation knows the room, because only then it can be silenced."""
    guild = await house.participation.of_guild(house.place.guild_id)
    await settle(lambda: guild.room is not None)


async def silent(house: House, seconds: float = 2.0) -> None:
    """Let time pass and check that the bot says nothing."""
    before = len(house.of(events.ReplySpoken))
    await house.pass_time(seconds)
    assert len(house.of(events.ReplySpoken)) == before


@pytest.mark.asyncio
async def test_who_was_answered_goes_on_without_the_name(tmp_path: Path) -> None:
    """Only the person who was answered can continue without the bot's name, and only for a while."""
    async with a_house(tmp_path) as house:
        responder = thinking(house, "It is green.")
        async with living(house):
            await house.say(ADA.id, "Roomtone, what colour is the door?")
            await house.reply(1)
            await house.say(ADA.id, "And what about the fence behind it?")
            await house.reply(2)
            assert [len(context.messages) for context in responder.contexts] == [4, 7]
            assert "SKIP" in responder.contexts[1].messages[-2].content
            assert "SKIP" not in responder.contexts[0].messages[-2].content
            assert [context.may_skip for context in responder.contexts] == [False, True]
            await house.say(BO.id, "And what about the roof?")
            await silent(house)
            await house.pass_time(40.0, step_s=1.0)
            await house.say(ADA.id, "And what about the garden?")
            await silent(house)
            assert len(responder.contexts) == 2


@pytest.mark.asyncio
async def test_others_who_take_over_end_it(tmp_path: Path) -> None:
    """After another person has joined in, what Ada says is for that person and gets no answer."""
    async with a_house(tmp_path) as house:
        thinking(house, "It is green.")
        async with living(house):
            await house.say(ADA.id, "Roomtone, what colour is the door?")
            await house.reply(1)
            await house.say(BO.id, "I would rather have it painted blue.")
            await house.say(ADA.id, "Blue, are you serious about that?")
            await silent(house)


@pytest.mark.asyncio
@pytest.mark.parametrize("answer", ["SKIP", "SKIP.", " skip", "SKIP. They talk to each other."])
async def test_a_skip_is_not_heard_and_leaves_nothing(tmp_path: Path, answer: str) -> None:
    """A SKIP leaves no sound, no turn and no message, only a log line and a count in the status."""
    async with a_house(tmp_path) as house:
        responder = thinking(house, "It is green.")
        async with living(house) as (room, _):
            await house.say(ADA.id, "Roomtone, what colour is the door?")
            await house.reply(1)
            responder.pieces = tuple(answer)
            with capture_logs() as logs:
                await house.say(ADA.id, "But I will paint it tomorrow then.")
                await settle(lambda: any(line["event"] == "reply_skipped" for line in logs))
            assert house.voice.spoken == ["It is green."]
            assert len(house.turns) == 3
            assert house.place.written == []
            assert "1 time there was nothing to say after all." in room.status()


@pytest.mark.asyncio
async def test_a_model_that_fails_where_nobody_asked_is_not_told(tmp_path: Path) -> None:
    """If the model fails on a reply that nobody asked for, only the log reports it."""
    async with a_house(tmp_path) as house:
        responder = thinking(house, "It is green.")
        async with living(house):
            await house.say(ADA.id, "Roomtone, what colour is the door?")
            await house.reply(1)
            responder.pieces = (ChatModelError("The model is away. Start it.", retryable=True),)
            with capture_logs() as logs:
                await house.say(ADA.id, "But I will paint it tomorrow then.")
                await settle(lambda: any(line["event"] == "optional_reply_failed" for line in logs))
            await silent(house)
            assert house.place.written == []


@pytest.mark.asyncio
async def test_told_to_shut_up_it_stops_at_once_and_stays_silent(tmp_path: Path) -> None:
    """ "Shut up" with the bot's name stops a reply at once. The bot goes on listening for ten minutes."""
    async with a_house(tmp_path) as house, living(house) as (room, _):
        link = house.place.links[-1]
        await house.say(ADA.id, "The spare key is under the blue flower pot.")
        link.pulling = False
        await house.say(BO.id, "Roomtone, where is the spare key?")
        await settle(lambda: bool(house.voice.spoken))
        await house.pass_time(TICK_S)
        link.pull(3)
        await house.say(ADA.id, "Shut up, Roomtone!")
        reply = await house.reply(1)
        assert reply.interrupted
        await settle(lambda: house.place.written[-1] == silenced_for(SILENT_MINUTES))
        link.pulling = True
        await settle(lambda: len(house.turns) == 4)
        await house.say(BO.id, "Roomtone, where is the spare key?")
        await silent(house)
        assert house.said[-1] == "Bo: Roomtone, where is the spare key?"
        assert "silenced: 1" in room.status()
        assert "I am silenced for now" in room.status()
        await settle(lambda: house.choices.by == [ADA.id])


@pytest.mark.asyncio
async def test_a_silence_outlives_a_crash_and_ends_with_the_session(tmp_path: Path) -> None:
    """A silence outlives a crash and a restart of the process, and ends with the session."""
    async with a_house(tmp_path) as house:
        async with living(house):
            await silenceable(house)
            await house.participation.silence_for_now(house.place.guild_id, by=BO.id)
        del house.participation
        async with living(house) as (room, task):
            await house.say(ADA.id, "Roomtone, hello.")
            await silent(house)
            room.close("left")
            await settle(task.done)
        async with living(house):
            await house.say(ADA.id, "Roomtone, hello.")
            await house.reply(1)


async def silent_for_two_minutes(house: House) -> None:
    """See that the bot answers nobody now, and answers again after two minutes."""
    await house.say(ADA.id, "Roomtone, hello.")
    await silent(house)
    await house.pass_time(120.0, step_s=1.0)
    await house.say(ADA.id, "Roomtone, hello there.")
    await house.reply(1)


@pytest.mark.asyncio
async def test_silence_for_some_minutes_is_over_by_itself(tmp_path: Path) -> None:
    """A silence for two minutes ends after two minutes."""
    async with a_house(tmp_path) as house, living(house):
        await silenceable(house)
        await house.participation.silence_for_now(house.place.guild_id, by=BO.id, minutes=2)
        await silent_for_two_minutes(house)


@pytest.mark.asyncio
async def test_over_the_ceiling_it_says_so_once_and_is_silent(tmp_path: Path) -> None:
    """Over the hourly ceiling the bot writes so once and is silent. After an hour it speaks again, and the status has
    the figures.
    """
    async with a_house(tmp_path) as house:
        house.participating = ParticipationSettings(max_calls_per_hour=1)
        async with living(house) as (room, _):
            await house.say(ADA.id, "Roomtone, hello.")
            await house.reply(1)
            for _ in range(2):
                await house.say(ADA.id, "Roomtone, are you there?")
                await silent(house)
            told = [sentence for sentence in house.place.written if "this server's hourly limit" in sentence]
            assert len(told) == 1
            assert "silent for about 60 minutes" in told[0]
            assert "In the last hour I used 1 of 1 calls of the model" in room.status()
            assert "over the hourly limit: 2" in room.status()
            await house.pass_time(3_600.0, step_s=30.0)
            await house.say(ADA.id, "Roomtone, are you there?")
            await house.reply(2)


@pytest.mark.asyncio
async def test_a_question_to_the_room_is_answered_where_it_speaks_freely(tmp_path: Path) -> None:
    """A question to the room is answered only in the mode `free`, and not if another person is addressed."""
    async with a_house(tmp_path) as house:
        responder = thinking(house, "At seven.")
        async with living(house):
            await house.say(ADA.id, "When does the concert start?")
            await silent(house)
            guild = await house.participation.of_guild(house.place.guild_id)
            guild.voice_mode = type(guild.voice_mode).FREE
            await house.say(ADA.id, "Bo, when does the concert start?")
            await silent(house)
            await house.say(ADA.id, "When does the concert start?")
            await house.reply(1)
            assert "a question to the room" in responder.contexts[0].messages[-2].content


@pytest.mark.asyncio
async def test_a_guilds_own_names_are_heard_and_told(tmp_path: Path) -> None:
    """A guild's own names for the bot are used by the recogniser's glossary, the decider and the model's prompt."""
    async with a_house(tmp_path) as house:
        responder = thinking(house, "Good evening.")
        async with living(house):
            await house.participation.choose_names(house.place.guild_id, ("Jeeves",), by=BO.id)
            await house.say(ADA.id, "Roomtone, hello.")
            await silent(house)
            await house.say(ADA.id, "Jeeves, hello.")
            await house.reply(1)
            assert 'they also call you "Jeeves"' in responder.contexts[0].messages[1].content
            assert house.recogniser.asked[-1][2][0] == "Jeeves"


@pytest.mark.asyncio
async def test_who_asks_is_answered_in_their_language(tmp_path: Path) -> None:
    """In a room of two languages the model is told whose to answer in. Events are in the recogniser's glossary."""
    async with a_house(tmp_path) as house:
        responder = thinking(house, "Half past nine.", "Halb zehn.", "Half past nine.")
        house.place.occasions = ["The Curse of Strahd"]
        house.recogniser.languages[BO.id] = "de"
        async with living(house):
            for number, (speaker, question, answered) in enumerate(
                (
                    (ADA, "Roomtone, when does the concert start tomorrow?", None),
                    (BO, "Roomtone, wann fängt morgen das Konzert an?", "Answer in German."),
                    (ADA, "Roomtone, when does the concert start tomorrow?", "Answer in English."),
                ),
                start=1,
            ):
                await house.say(speaker.id, question)
                await house.reply(number)
                instructions = responder.contexts[-1].messages[-2].content
                assert (answered is None and "Answer in" not in instructions) or (answered or "") in instructions
        assert [context.language for context in responder.contexts] == ["", "de", "en"]
        assert {"Curse", "Strahd"} <= set(house.recogniser.asked[0][2])


@pytest.mark.asyncio
async def test_an_unsure_language_is_heard_as_the_servers(tmp_path: Path) -> None:
    """Whoever speaks a language that is not sure is heard in that of /settings, as it is at that moment."""
    async with a_house(tmp_path) as house:
        house.recogniser.unsure = {ADA.id}
        async with living(house):
            await house.say(ADA.id, "And then the lamp goes out, as it did before.")
            await house.servers.change(house.place.guild_id, lambda _: ServerSettings(language="de"), by=1)
            house.recogniser.texts.append("And so it is dark, I say.")
            await house.say(ADA.id, "Und dann geht die Lampe aus, wie damals.")
        assert [language for _, language, _ in house.recogniser.asked] == [None, None, "de"]


@pytest.mark.asyncio
async def test_a_quiet_room_may_hear_a_thought(tmp_path: Path) -> None:
    """After the set silence the bot may speak unasked, at most once in the set time, and not before anybody
    has spoken.
    """
    async with a_house(tmp_path) as house:
        house.participating = ParticipationSettings(quiet_thought_after_minutes=2, quiet_thought_every_minutes=10)
        responder = thinking(house, "Who brings the lamp, by the way?")
        async with living(house):
            await house.pass_time(300.0, step_s=CHECK_QUIET_S)
            assert not responder.contexts  # nothing was ever said
            await house.say(ADA.id, "Somebody has to bring the lamp.")
            await house.pass_time(100.0, step_s=CHECK_QUIET_S)
            assert not responder.contexts
            await house.pass_time(2 * CHECK_QUIET_S + 20.0, step_s=CHECK_QUIET_S)
            await house.reply(1)
            (context,) = responder.contexts
            assert "Nobody has said anything for a while" in context.messages[-2].content
            await house.pass_time(300.0, step_s=CHECK_QUIET_S)
            assert len(responder.contexts) == 1


@pytest.mark.asyncio
async def test_who_has_opted_out_is_neither_heard_nor_answered(tmp_path: Path) -> None:
    """The sound of a person who has opted out is excluded and not even recognised, and their coming and going become
    no turns.
    """
    async with a_house(tmp_path) as house, living(house) as (room, _):
        assert not house.place.excludes(ADA.id)
        await house.participation.set_opt_out(house.place.guild_id, ADA.id, out=True)
        assert house.place.excludes(ADA.id)
        assert not house.place.excludes(BO.id)
        # If it were recognised, the next text would be taken for hers.
        house.place.links[-1].hear(speech(ADA.id, at=house.clock.monotonic()))
        room.on_membership(MembershipChange(ADA, joined=False))
        await house.pass_time(3.0)
        await house.say(BO.id, "Roomtone, hello.")
        await house.reply(1)
        assert not [line for line in house.said if line.startswith("Ada")]
        assert house.place.written == []
        await house.participation.set_opt_out(house.place.guild_id, ADA.id, out=False)
        assert not house.place.excludes(ADA.id)


@pytest.mark.asyncio
async def test_another_bot_is_not_talked_to(tmp_path: Path) -> None:
    """Speech addressed to another bot, and speech of another bot, get no answer."""
    async with a_house(tmp_path) as house:
        house.place.people = [ADA, OTHER_BOT]
        async with living(house):
            await house.say(ADA.id, "Juke, play something slow.")
            await silent(house)
            await house.say(OTHER_BOT.id, "Roomtone, hello.")
            await silent(house)


@pytest.mark.asyncio
async def test_what_happens_twice_in_a_row_is_one_turn(tmp_path: Path) -> None:
    """A repeated membership change, or the same laughter of one person shortly after, is recorded once."""
    async with a_house(tmp_path) as house, living(house) as (room, _):
        for joined in (True, True, False, True):
            room.on_membership(MembershipChange(CY, joined=joined))
        await settle(lambda: len(house.turns) == 1)
        await house.pass_time(TURN_EVERY_S + 2 * CHECK_ROOM_S, step_s=1.0)
        await settle(lambda: len(house.turns) == 2)
        assert house.said == ["Cy: Cy joined the channel.", "Cy: Cy left the channel and came back."]
        await house.say(ADA.id, "[laughter]")
        house.recogniser.texts.append("[laughter]")
        house.place.links[-1].hear(speech(ADA.id, at=house.clock.monotonic()))
        await house.pass_time(2.0)
        await house.say(BO.id, "[laughter]")
        await house.pass_time(12.0, step_s=1.0)
        await house.say(BO.id, "[laughter]")
        assert [turn.kind for turn in house.turns] == [TurnKind.MEMBERSHIP] * 2 + [TurnKind.EFFECT] * 3
        assert [line.split(":")[0] for line in house.said] == ["Cy", "Cy", "Ada", "Bo", "Bo"]


@pytest.mark.asyncio
async def test_what_is_said_at_once_is_judged_in_its_order(tmp_path: Path) -> None:
    """The utterances of one group are judged in order: after Bo has joined in, Ada's question is for him."""
    async with a_house(tmp_path) as house:
        responder = thinking(house, "It is green.")
        async with living(house):
            await house.say(ADA.id, "Roomtone, what colour is the door?")
            await house.reply(1)
            before = house.clock.monotonic()
            house.recogniser.texts += ["I would rather have it painted blue.", "And would that be expensive?"]
            await house.pass_time(2.0)
            link = house.place.links[-1]
            link.hear(speech(BO.id, at=before))
            link.hear(speech(ADA.id, at=before + 1.0))
            await house.pass_time(3.0)
            await settle(lambda: len(house.turns) == 3)
            assert [part.speaker for part in house.turns[2].parts] == ["Bo", "Ada"]
            await silent(house)
            assert len(responder.contexts) == 1


@pytest.mark.asyncio
async def test_what_tools_make_the_model_read_again_counts(tmp_path: Path) -> None:
    """Each tool step counts towards the hourly ceiling as a call of its own with the whole prompt."""
    async with a_house(tmp_path) as house:
        toolbox = Toolbox()

        class Looker(ScriptedResponder):
            """A responder that calls a tool in two steps before it answers."""

            async def respond(self, context: ModelContext) -> AsyncGenerator[str, None]:
                """Record two tool steps and yield the script."""
                step = ToolExchange((MessageToolCall("c", "look", "{}"),), ("A map.",))
                toolbox.exchanges.record(context.current.seq, [step, step])
                async for piece in super().respond(context):
                    yield piece

        house.toolbox = lambda *_: toolbox
        house.new_responder = lambda: Looker("It is green.")
        async with living(house):
            await house.say(ADA.id, "Roomtone, what colour is the door?")
            await house.reply(1)
            guild = await house.participation.of_guild(house.place.guild_id)
            spent = guild.costs.last_hour(house.clock.monotonic())
            (built,) = house.of(events.ContextBuilt)
            assert isinstance(built, events.ContextBuilt)
            assert spent.calls == 3
            assert spent.tokens > 3 * sum(part.tokens for part in built.parts)


@pytest.mark.asyncio
async def test_what_was_just_said_is_forgotten_too(tmp_path: Path) -> None:
    """Words from before /forget-me that are not recorded yet become no turn, and the reply in progress stops. What the
    person says later is recorded.
    """
    async with a_house(tmp_path) as house, living(house):
        await silenceable(house)
        link = house.place.links[-1]
        await house.say(BO.id, "The spare key is under the blue flower pot.")
        link.pulling = False
        await house.say(BO.id, "Roomtone, where is the spare key?")
        await settle(lambda: bool(house.voice.spoken))
        house.recogniser.texts.append("The walrus sleeps in the shed.")
        await house.pass_time(TICK_S)
        link.pull(3)
        started = house.clock.monotonic()
        await house.pass_time(TICK_S)
        link.hear(speech(ADA.id, at=started))
        house.participation.on_forgetting(ADA.id)
        guild = await house.participation.of_guild(house.place.guild_id)
        assert guild.room is not None
        house.participation.on_forgotten([guild.room.session_id])
        assert (await house.reply(1)).interrupted
        await house.pass_time(3.0)
        assert house.recogniser.texts.pop() == "The walrus sleeps in the shed.", "nobody recognises it any more"
        link.pulling = True
        assert not [line for line in house.said if "walrus" in line]
        await house.say(ADA.id, "Good morning to all of you.")
        await settle(lambda: house.said[-1] == "Ada: Good morning to all of you.")


@pytest.mark.asyncio
async def test_what_is_forgotten_while_it_is_recognised_is_shown_to_nobody(tmp_path: Path) -> None:
    """Words from before /forget-me whose text comes later reach no observer, and so neither dashboard nor tail."""
    async with a_house(tmp_path) as house, living(house):
        house.recogniser.texts.append("The walrus sleeps in the shed.")
        house.recogniser.gate.clear()
        started = house.clock.monotonic()
        await house.pass_time(TICK_S)
        house.place.links[-1].hear(speech(ADA.id, at=started))
        await house.pass_time(3.0)
        assert len(house.recogniser.asked) == 1
        house.participation.on_forgetting(ADA.id)
        house.recogniser.gate.set()
        await settle(lambda: bool(house.of(events.SpeechDropped)))
        assert house.of(events.UtteranceTranscribed) + house.of(events.InterimTranscribed) == []
