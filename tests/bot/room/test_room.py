"""One room from joining to leaving: what is heard, recorded, answered and shown."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from bot import events
from bot.brain.embedded.chat import NO_MODEL
from bot.channel.port import RoomChannel
from bot.llm.fallback import FallbackModel
from bot.memory.personal_recall import MemoryReaders
from bot.memory.session_views import SessionViews
from bot.models.voices import DEFAULT_VOICE
from bot.participation.guild_state import GuildState, NotNowError
from bot.participation.settings import ParticipationSettings
from bot.posts.notice import DEFAULT_NOTICE
from bot.posts.transcript import THREAD_UNSTORED, WRITE_EVERY_S
from bot.posts.translation import AWAY
from bot.room.room import Room
from bot.room.room_check import CHECK_ROOM_S
from bot.room.writing_down import NO_CAPTIONS
from bot.server_settings import ListenRequest, ListenTarget, ServerSettings, ServerSettingsBook
from compaction.model import SessionId, TurnKind
from compaction.session import SessionTimeline
from tests.bot.room.room_scene import House, a_house, ended, leave, living
from tests.fakes.billed import BilledEndpoint
from tests.fakes.choices import FULL, FailingServerSettings
from tests.fakes.room_channel import ADA, BO, FakeRoomChannel


async def test_the_dashboard_gets_every_event_of_the_room(tmp_path: Path) -> None:
    """While a room lives it is shown, with its session, memory and server; the process's observer gets all as well."""
    shown: list[events.Event] = []
    life: list[tuple[object, ...]] = []

    @contextmanager
    def show(
        session_id: SessionId, channel: RoomChannel, timeline: SessionTimeline, guild: GuildState
    ) -> Iterator[events.Observer]:
        life.append((session_id, channel.channel_id, timeline.session_id, guild.guild_id))
        yield shown.append
        life.append(())

    async with a_house(tmp_path) as house:
        shown_room = Room(house.channel, replace(house.services(), show_live=show))
        async with living(house, room=shown_room) as (room, task):
            await house.say(ADA.id, "The train leaves at nine.")
            await house.pass_time(CHECK_ROOM_S + 1)
            await leave(room, task)
    begun, over = life
    assert begun[1:] == (house.channel.channel_id, begun[0], house.channel.guild_id)
    assert over == ()
    assert shown == house.seen
    kinds = {type(event) for event in shown}
    assert {events.RoomOpened, events.TurnRecorded, events.ConnectionChanged, events.StatusTold} <= kinds


@pytest.mark.usefixtures("room")
async def test_people_are_told_heard_and_answered(house: House) -> None:
    """The room posts its notice, records what is said, and answers a question from it. The answer becomes a
    turn too.
    """
    (notice,) = house.channel.notices
    assert notice.startswith(DEFAULT_NOTICE)
    assert "/opt-out" in notice
    assert house.channel.shown_as_listening
    await house.say(ADA.id, "The spare key is under the blue flower pot.")
    assert not house.of(events.ContextBuilt)
    await house.say(BO.id, "Roomtone, where is the spare key?")
    reply = await house.reply(1)
    assert reply.text == f"Ada said: The spare key is under the blue flower pot. {NO_MODEL}"
    assert (reply.answer_to, reply.interrupted) == (1, False)
    assert [turn.seq for turn in house.turns] == [0, 1, 2]
    assert house.turns[2].kind is TurnKind.ASSISTANT
    assert house.said[2] == f"Roomtone: {reply.text}"
    expected = ("Roomtone", "Room tone", "Ada", "Bo", "The Lantern Society", "Lounge")
    assert house.recogniser.asked[0][2] == expected


@pytest.mark.parametrize("target", ["file", "thread"])
async def test_a_session_can_be_only_written_down(house: House, target: ListenTarget) -> None:
    """Called with `listen`, the bot writes down and never answers: not by name, not after /talk, not after a crash."""
    house.listen = ListenRequest(target, 601)
    views = SessionViews(house.sessions, house.store, withheld=house.participation.withheld_on)
    house.readable = MemoryReaders(views, cast("Any", None), cast("Any", None))
    async with living(house):
        assert "I do not speak." in house.channel.notices[0]
        assert "take part" not in house.channel.notices[0]
        await house.say(ADA.id, "Roomtone, when do we meet @everyone?")
        await house.participation.of_guild(house.channel.guild_id)
        with pytest.raises(NotNowError, match="/leave"):
            await house.participation.lift_silence(house.channel.guild_id, by=1, manager=True)
        await house.pass_time(11)
    house.listen = None
    async with living(house) as (room, task):
        assert room.only_listens
        assert "only write down" in room.status()
        assert "I answer" not in room.status()
        assert "only write down" in str(await room.play_sample(DEFAULT_VOICE))
        assert room.captions_thread == (house.channel.thread.id if target == "thread" else None)
        await house.say(BO.id, "Roomtone, you may talk again.")
        await house.pass_time(11)
        assert await leave(room, task) == "left"
    assert not [event for event in house.seen if isinstance(event, events.ReplySpoken)]
    if target == "thread":
        assert house.channel.threads == [601]
        written = "\n".join(house.channel.thread.posted)
        assert "**Ada:** Roomtone, when do we meet @\u200beveryone?" in written
        assert house.channel.files == []
    else:
        ((_, name, written),) = house.channel.files
        assert name.endswith(".md")
        assert "everyone" in written
    assert "Roomtone, you may talk again." in written
    async with living(house) as (room, _):
        assert not room.only_listens
        assert "only write down" not in room.status()
        assert room.captions_thread is None


CAPTIONS = ListenRequest("thread", 601, captions=True)


class NoThreads(FailingServerSettings):
    """Takes everything but the thread into which a session is written."""

    async def put(self, guild_id: int, settings: ServerSettings, *, by: int | None) -> None:
        self.broken = settings.listen_only is not None and settings.listen_only.thread_id is not None
        await super().put(guild_id, settings, by=by)


async def test_a_thread_that_cannot_be_stored_is_told_once(house: House) -> None:
    """It is written into all the same."""
    house.servers, house.listen = ServerSettingsBook(NoThreads()), ListenRequest("thread", 601)
    async with living(house):
        await house.say(ADA.id, "We meet at noon.")
        await house.pass_time(2 * WRITE_EVERY_S)
        assert "We meet at noon." in "".join(house.channel.thread.posted)
    assert house.channel.written == [THREAD_UNSTORED.fill(error=FULL)]


async def test_captions_are_written_while_the_bot_takes_part(house: House) -> None:
    """It answers, and its answers are in the thread too, also in the room after a crash."""
    await house.servers.change(house.channel.guild_id, lambda _: ServerSettings(posts_transcripts=True), by=1)
    house.listen = CAPTIONS
    for number in (1, 2):
        async with living(house) as (room, _):
            assert "only write down" not in room.status()
            await house.pass_time(2 * WRITE_EVERY_S)
            await house.say(BO.id, f"Roomtone, where is key {number}?")
            await house.reply(number)
            await house.pass_time(2 * WRITE_EVERY_S)
        house.listen = None
    assert "I also write down" in house.channel.notices[0]
    written = "\n".join(house.channel.thread.posted)
    assert [written.count(text) for text in ("**Bo:** Roomtone, where is key", "**Roomtone:**")] == [2, 2]
    assert house.channel.threads == [601]


async def test_lines_of_captions_that_wait_go_with_their_person(house: House) -> None:
    """Nothing of them is written."""
    await house.servers.change(house.channel.guild_id, lambda _: ServerSettings(posts_transcripts=True), by=1)
    house.listen = CAPTIONS
    async with living(house):
        await house.pass_time(2 * WRITE_EVERY_S)
        await house.say(BO.id, "My aunt in Zanzibarq pays.")
        await house.participation.set_opt_out(house.channel.guild_id, BO.id, out=True)
        await house.pass_time(2 * WRITE_EVERY_S)
    assert "Zanzibarq" not in "".join(house.channel.thread.posted)


@pytest.mark.parametrize("by", ["somebody", "the server"])
async def test_captions_begin_and_end_while_a_session_runs(house: House, by: str) -> None:
    """People are told before the first word is written, and what is said before and afterwards is not."""

    async def choose(*, on: bool) -> None:
        if by == "somebody":
            await room.caption(CAPTIONS if on else None)
        else:
            chosen = ServerSettings(posts_transcripts=True, captions=on)
            await house.servers.change(house.channel.guild_id, lambda _: chosen, by=1)
        await house.pass_time(2 * WRITE_EVERY_S)

    await house.servers.change(house.channel.guild_id, lambda _: ServerSettings(posts_transcripts=True), by=1)
    async with living(house) as (room, _):
        for number, on in enumerate((False, True, False, True)):
            await choose(on=on)
            await house.say(BO.id, f"Sentence {number}.")
            await house.pass_time(2 * WRITE_EVERY_S)
        assert ["I also write down" in notice for notice in house.channel.notices] == [False, True, True]
        assert set(house.channel.threads) == {601 if by == "somebody" else house.channel.channel_id}
    written = "\n".join(house.channel.thread.posted)
    assert [f"Sentence {number}." in written for number in range(4)] == [False, True, False, True]


async def test_the_server_pays_for_a_translation_within_its_hour(house: House) -> None:
    """Once that is used up, people read what was said, and why."""
    house.participating = ParticipationSettings(max_calls_per_hour=1)
    await house.servers.change(house.channel.guild_id, lambda _: ServerSettings(posts_transcripts=True), by=1)
    house.listen = ListenRequest("thread", 601, captions=True, language="de")
    model = BilledEndpoint('{"lines": ["Guten Morgen."]}').budgeted
    house.model = FallbackModel([model], within_s=1.0, clock=house.clock)
    async with living(house):
        guild = await house.participation.of_guild(house.channel.guild_id)
        await house.pass_time(2 * WRITE_EVERY_S)
        for text in ("Good morning.", "Good evening."):
            await house.say(BO.id, text)
            await house.pass_time(2 * WRITE_EVERY_S)
        assert (guild.costs.total.calls, guild.costs.total.tokens) == (1, 650)
    written = "\n".join(house.channel.thread.posted)
    assert [text in written for text in ("Guten Morgen.", "||Good morning.||", "**Bo:** Good evening.")] == [True] * 3
    assert AWAY in house.channel.written


@pytest.mark.parametrize(
    ("always", "asked"),
    [(False, CAPTIONS), (True, ListenRequest("thread", FakeRoomChannel().channel_id, captions=True))],
)
async def test_the_talk_goes_on_without_captions(house: House, always: bool, asked: ListenRequest) -> None:
    """Where none can be written, people read why and what to do, once; and who does that has them."""
    chosen = ServerSettings(posts_transcripts=True, captions=always)
    await house.servers.change(house.channel.guild_id, lambda _: chosen, by=1)
    house.listen = None if always else asked
    house.channel.takes_threads = False
    async with living(house) as (room, _):
        await house.say(BO.id, "Roomtone, where is the spare key?")
        await house.reply(1)
        await house.pass_time(2 * WRITE_EVERY_S)
        assert house.channel.written == [NO_CAPTIONS.fill(why="No thread here.")]
        house.channel.takes_threads = True
        await room.caption(asked)
        await house.pass_time(2 * WRITE_EVERY_S)
        await house.say(BO.id, "It is here.")
        await house.pass_time(2 * WRITE_EVERY_S)
    assert "It is here." in house.channel.thread.posted[-1]
    assert len(house.channel.written) == 1


async def test_without_a_thread_it_does_not_listen(house: House) -> None:
    """Where no thread can be made, the bot says so and leaves."""
    house.listen = ListenRequest("thread", 601)
    house.channel.takes_threads = False
    async with living(house) as (_, task):
        assert await ended(house, task) == "no_transcript"
    assert house.channel.written == ["I am leaving. No thread here."]
