"""One room from joining to leaving: what is heard, recorded, answered and shown."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import pytest
from structlog.testing import capture_logs

from bot import events
from bot.brain.embedded.chat import NO_MODEL
from bot.brain.speech_output import TOO_MUCH
from bot.channel.port import ListenRequest
from bot.guild import GuildChoice
from bot.llm.budget import Budget
from bot.memory.readable_memory import ReadableMemory
from bot.memory.session_reader import SessionReader
from bot.models.voices import DEFAULT_VOICE
from bot.participation.all_guilds import ListensOnlyError
from bot.room.guild_policy import GuildPolicy
from bot.room.room import Room
from bot.room.room_check import CHECK_ROOM_S
from bot.server_settings import ServerSettings
from bot.settings import RoomSettings
from bot.store.database import open_database
from bot.store.guilds import GuildStore
from compaction.model import Mode, TurnKind
from compaction.settings import BudgetSettings
from tests.bot.room.room_scene import a_house, ended, living, settle
from tests.fakes.hearing import speech
from tests.fakes.place import ADA, BO, OTHER_BOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from bot.channel.port import Place
    from bot.participation.guild_participation import GuildParticipation
    from bot.server_settings import ListenTarget
    from compaction.model import SessionId
    from compaction.session import SessionMemory


@pytest.mark.asyncio
async def test_the_dashboard_gets_every_event_of_the_room(tmp_path: Path) -> None:
    """While a room lives it is shown, with its session, memory and server; the process's observer gets all as well."""
    shown: list[events.Event] = []
    life: list[tuple[object, ...]] = []

    @contextmanager
    def show(
        session_id: SessionId, place: Place, memory: SessionMemory, guild: GuildParticipation
    ) -> Iterator[events.Observer]:
        life.append((session_id, place.channel_id, memory.session_id, guild.guild_id))
        yield shown.append
        life.append(())

    async with a_house(tmp_path) as house:
        room = Room(house.place, replace(house.services(), show_live=show))
        task = asyncio.create_task(room.run(), name="room-under-test")
        await settle(room.opened.is_set)
        await house.say(ADA.id, "The train leaves at nine.")
        await house.pass_time(CHECK_ROOM_S + 1)
        room.close("left")
        await ended(house, task)
    begun, over = life
    assert begun[1:] == (house.place.channel_id, begun[0], house.place.guild_id)
    assert over == ()
    assert shown == house.seen
    kinds = {type(event) for event in shown}
    assert {events.RoomOpened, events.TurnRecorded, events.LinkChanged, events.QueuesMeasured} <= kinds


@pytest.mark.asyncio
async def test_people_are_told_heard_and_answered(tmp_path: Path) -> None:
    """The room posts its notice, records what is said, and answers a question from it. The answer becomes a
    turn too.
    """
    async with a_house(tmp_path) as house, living(house):
        (notice,) = house.place.notices
        assert notice.startswith(RoomSettings().notice)
        assert "/opt-out" in notice
        assert house.place.shown_as_listening
        await house.say(ADA.id, "The spare key is under the blue flower pot.")
        assert not house.of(events.ContextBuilt)
        await house.say(BO.id, "Roomtone, where is the spare key?")
        reply = await house.reply(1)
        assert reply.text == f"Just now, Ada said: The spare key is under the blue flower pot. {NO_MODEL}"
        assert (reply.answer_to, reply.interrupted) == (1, False)
        assert [turn.seq for turn in house.turns] == [0, 1, 2]
        assert house.turns[2].kind is TurnKind.ASSISTANT
        assert house.said[2] == f"Roomtone: {reply.text}"
        expected = ("Roomtone", "Room tone", "Ada", "Bo", "The Lantern Society", "Lounge")
        assert house.recogniser.asked[0][2] == expected


@pytest.mark.asyncio
async def test_the_context_is_what_was_said_before_the_question(tmp_path: Path) -> None:
    """The context has the system prompt, who is there, the earlier turns in order, what is said about the
    answer, and the question.
    """
    async with a_house(tmp_path) as house, living(house):
        await house.say(ADA.id, "I painted the old fence green.")
        await house.say(BO.id, "Roomtone, what did Ada paint?")
        await house.reply(1)
        built = house.of(events.ContextBuilt)[0]
        assert isinstance(built, events.ContextBuilt)
        assert [part.kind.value for part in built.parts] == ["system", "participants", "turn", "system", "current"]
        assert "In the voice channel with you now: Ada, Bo." in built.parts[1].content
        assert built.parts[2].content.endswith("Ada: I painted the old fence green.")
        # Turns have a clock time and no date.
        assert built.parts[3].content == "Today is Thursday, 9 October 2025; tomorrow is Friday, 10 October."
        assert built.answer_to == 1


@pytest.mark.asyncio
async def test_a_guilds_choice_holds_from_the_next_reply_on(tmp_path: Path) -> None:
    """A guild's mode and budget can change during a session. If a question is too large for the budget, the bot says so
    aloud.
    """
    async with a_house(tmp_path) as house, open_database(tmp_path / "guilds.db") as database:
        guilds = GuildStore(database, house.clock)
        budget = Budget(BudgetSettings(max_context_tokens=1_024, reserved_output_tokens=512))
        house.policy = GuildPolicy(guilds, budget, mode=Mode.SUMMARY, max_output_tokens=300)
        guild_id, long = house.place.guild_id, "Roomtone, what was painted " + "4711 " * 250
        with capture_logs() as logs:
            async with living(house):
                await guilds.choose(guild_id, lambda _: GuildChoice(Mode.ROLLING, False), by=BO.id)
                await house.say(BO.id, long)
                await house.reply(1)
                await guilds.choose(guild_id, lambda _: GuildChoice(None, True), by=BO.id)
                await house.say(BO.id, long)
                assert (await house.reply(2)).text == TOO_MUCH
        (built,) = house.of(events.ContextBuilt)
        assert isinstance(built, events.ContextBuilt)
        assert sum(part.tokens for part in built.parts) > budget.room()
        changed = [(line["old_mode"], line["new_mode"]) for line in logs if line["event"] == "compaction_mode_changed"]
        assert changed == [("summary", "rolling"), ("rolling", "summary")]
        assert "512 are allowed" in house.place.written[-1]


@pytest.mark.asyncio
async def test_alone_with_one_person_every_word_is_for_the_bot(tmp_path: Path) -> None:
    """Alone with one person, the bot answers everything they say. Another bot does not count as a participant."""
    async with a_house(tmp_path) as house:
        house.place.people = [ADA, OTHER_BOT]
        async with living(house):
            await house.say(ADA.id, "Hello there, how are you?")
            assert (await house.reply(1)).text.startswith("Hello, Ada.")


@pytest.mark.asyncio
@pytest.mark.parametrize("target", ["file", "thread"])
async def test_a_session_can_be_only_written_down(tmp_path: Path, target: ListenTarget) -> None:
    """Called with `listen`, the bot writes down and never answers: not by name, not after /talk, not after a crash."""
    async with a_house(tmp_path) as house:
        house.listen = ListenRequest(target, 601)
        reader = SessionReader(house.sessions, house.store, withheld=house.participation.withheld_on)
        house.readable = ReadableMemory(reader, cast("Any", None), cast("Any", None))
        async with living(house):
            assert "I say nothing." in house.place.notices[0]
            assert "take part" not in house.place.notices[0]
            await house.say(ADA.id, "Roomtone, when do we meet @everyone?")
            await house.participation.of_guild(house.place.guild_id)
            with pytest.raises(ListensOnlyError, match="/leave"):
                await house.participation.lift_silence(house.place.guild_id, by=1, moderator=True)
            await house.pass_time(11)
        house.listen = None
        async with living(house) as (room, task):
            assert "only write down" in room.status()
            assert "I answer" not in room.status()
            assert "only write down" in str(await room.play_sample(DEFAULT_VOICE))
            await house.say(BO.id, "Roomtone, you may talk again.")
            await house.pass_time(11)
            room.close("left")
            assert await ended(house, task) == "left"
        assert not [event for event in house.seen if isinstance(event, events.ReplySpoken)]
        if target == "thread":
            assert house.place.threads == [601]
            written = "\n".join(house.place.thread.posted)
            assert "**Ada:** Roomtone, when do we meet @\u200beveryone?" in written
            assert house.place.files == []
        else:
            ((name, written),) = house.place.files
            assert name.endswith(".md")
            assert "everyone" in written
        assert "Roomtone, you may talk again." in written
        async with living(house) as (room, _):
            assert "only write down" not in room.status()


@pytest.mark.asyncio
async def test_without_a_thread_it_does_not_listen(tmp_path: Path) -> None:
    """Where no thread can be made, the bot says so and leaves."""
    async with a_house(tmp_path) as house:
        house.listen = ListenRequest("thread", 601)
        house.place.takes_threads = False
        async with living(house) as (_, task):
            assert await ended(house, task) == "no_transcript"
        assert house.place.written == ["I am leaving. No thread here."]


@pytest.mark.asyncio
async def test_one_message_shows_how_the_session_goes(tmp_path: Path) -> None:
    """It is written once and edited at most every 15 s, only when something has changed, and a last time at the end."""
    async with a_house(tmp_path) as house, living(house) as (room, task):
        await settle(lambda: bool(house.place.cards))
        assert [edits for edits, _ in house.place.cards] == [None]
        await house.pass_time(14)
        await house.say(ADA.id, "We meet on Saturday.")
        assert len(house.place.cards) <= 2
        await house.pass_time(30)
        edits, card = house.place.cards[-1]
        assert edits == 1
        assert {str(name): text for name, text in card.fields}["who spoke, and how often"] == f"<@{ADA.id}> 1"
        room.close("left")
        await ended(house, task)
        assert house.place.cards[-1][1].text == "The session is over."


@pytest.mark.asyncio
async def test_a_server_can_do_without_the_message(tmp_path: Path) -> None:
    """With live_message off nothing is written but the notice."""
    async with a_house(tmp_path) as house:
        await house.servers.change(house.place.guild_id, lambda _: ServerSettings(live_message=False), by=1)
        async with living(house) as (room, task):
            room.close("left")
            await ended(house, task)
        assert house.place.cards == []


@pytest.mark.asyncio
async def test_people_who_talk_at_once_are_one_turn_with_each_ones_words(tmp_path: Path) -> None:
    """People who talk at once become one turn with a part for each, in the order in which they began, and a question in
    it is answered.
    """
    async with a_house(tmp_path) as house, living(house):
        house.recogniser.texts += ["I do too, very much.", "Roomtone, who likes the lighthouse?"]
        at = house.clock.monotonic()
        house.place.links[-1].hear([*speech(BO.id, at=at, seconds=1.5), *speech(ADA.id, at=at + 1.0, seconds=3.0)])
        await house.pass_time(6.0)
        await settle(lambda: bool(house.turns))
        [turn] = [each for each in house.turns if each.kind is not TurnKind.ASSISTANT]
        assert [(part.speaker, part.text) for part in turn.parts] == [
            ("Bo", "I do too, very much."),
            ("Ada", "Roomtone, who likes the lighthouse?"),
        ]
        assert turn.kind is TurnKind.SPEECH
        assert turn.ended_at - turn.started_at == pytest.approx(4.0, abs=0.1)
        reply = await house.reply(1)
        assert reply.answer_to == turn.seq
        assert "nothing about that here, Ada" in reply.text


@pytest.mark.asyncio
async def test_what_only_sounded_is_an_effect(tmp_path: Path) -> None:
    """A recognised sound such as '[laughter]' becomes an effect turn."""
    async with a_house(tmp_path) as house, living(house):
        await house.say(ADA.id, "[laughter]")
        assert [turn.kind for turn in house.turns] == [TurnKind.EFFECT]
