"""How a room ends: in order, by a crash, and in the middle of a sentence."""

from __future__ import annotations

import pytest

from bot import events
from bot.health import FaultKind, HealthFault, database_fault
from bot.room.leaving import HANDED_OVER, PROCESS_ENDS, ReachedLimit, SessionLimits
from bot.room.room import Room
from bot.room.room_check import CHECK_ROOM_S
from bot.room.room_faults import DEAFENED, MUTED
from bot.server_settings import ServerSettings
from bot.store.turns import SqlTurnStore
from bot.texts.text import Text, verbatim
from compaction.errors import StoreError
from compaction.model import SessionId, Turn, TurnKind
from tests.bot.room.messages import Message
from tests.bot.room.room_scene import House, ended, leave, living
from tests.fakes.brain import FRAMES_A_WORD, ScriptedResponder
from tests.fakes.hearing import speech
from tests.fakes.loop_time import loop_turns
from tests.fakes.room_channel import ADA, BO, FakeRoomChannel
from tests.patience import settle
from voice.errors import RemovedFromChannelError, VoiceConnectionError
from voice.transport.audio_events import SpeechFrames


async def test_an_orderly_end_stores_the_last_words_and_ends_the_session(house: House) -> None:
    """If the bot is sent away while a person is speaking, their words become a turn and the session is closed."""
    async with living(house) as (room, task):
        await house.say(ADA.id, "We meet at the old station.")
        house.recogniser.texts.append("And bring your umbrella, please.")
        sound: list[SpeechFrames] = [speech(ADA.id, at=house.clock.monotonic())[0]]  # type: ignore[list-item]
        house.channel.connections[-1].hear(sound)
        assert await leave(room, task) == "left"
        assert house.said[-1] == "Ada: And bring your umbrella, please."
        opened, closed = house.of(events.RoomOpened)[0], house.of(events.RoomClosed)[0]
        session = await house.sessions.find(opened.session_id)  # type: ignore[arg-type]
        assert session is not None
        assert session.ended_at is not None
        assert closed.reason == "left"
        memory = await house.store.load(session.id)
        assert memory.segments[-1].closing


async def test_a_room_ends_what_a_crash_has_left_open_in_another_channel(house: House) -> None:
    """The bot was being moved. It would come back to the first channel at a later start, also if somebody has sent it
    away from the second one.
    """
    async with living(house):
        await house.say(ADA.id, "The budget is four hundred euros.")
    house.channel = FakeRoomChannel(channel_id=house.channel.channel_id + 1)
    async with living(house):
        first, second = (each for each in house.seen if isinstance(each, events.RoomOpened))
        ended_first, ended_second = [await house.sessions.find(each.session_id) for each in (first, second)]  # type: ignore[arg-type]
    assert ended_first is not None
    assert ended_second is not None
    assert (ended_first.ended_at, ended_second.ended_at) == (ended_first.last_turn_at, None)


async def test_a_room_that_is_handed_over_asks_discord_for_nothing_at_its_end(house: House) -> None:
    """The mark that the bot listens stays, and the message with it: people would be without the bot for that long."""
    async with living(house) as (room, task):
        await house.say(ADA.id, "The budget is four hundred euros.")
        cards = len(house.channel.cards)
        room.close(HANDED_OVER)
        assert room.ending is None
        assert await ended(house, task) == HANDED_OVER
    assert (house.channel.shown_as_listening, len(house.channel.cards)) == (True, cards)
    async with living(house) as (room, task):
        await leave(room, task)
    assert not house.channel.shown_as_listening


async def test_a_session_ends_when_it_is_as_long_as_it_may_be(house: House) -> None:
    """After the server's longest time the bot says so and ends the session; the next room begins a new one."""
    await house.servers.change(house.channel.guild_id, lambda _: ServerSettings(longest_session_h=1), by=1)
    async with living(house) as (_, task):
        house.channel.people = [ADA]
        await house.pass_time(3_500, step_s=60.0)
        assert not task.done()
        await house.pass_time(200, step_s=60.0)
        assert await ended(house, task) == "longest"
    assert "has lasted 1 hour" in house.channel.written[-1]
    async with living(house) as (_, task):
        await house.pass_time(100, step_s=60.0)
        assert not task.done()
    assert len({each.session_id for each in house.seen if isinstance(each, events.RoomOpened)}) == 2


async def test_a_lost_connection_is_a_crash_unless_somebody_sent_the_bot_away(house: House) -> None:
    """A lost voice connection ends the room with `VoiceConnectionError`. A moderator's disconnect ends it in order."""
    async with living(house) as (room, task):
        house.channel.connections[-1].lose("The voice server is gone.")
        await settle(task.done)
        # Nothing would store or answer what is typed before the next room.
        assert await room.take_typed(Message("Where is the key?")) == room.status()
        error = task.exception()
        assert isinstance(error, ExceptionGroup)
        assert isinstance(error.exceptions[0], VoiceConnectionError)
    async with living(house) as (_, task):
        house.channel.connections[-1].lose(removed=True)
        assert await ended(house, task) == "expelled"
    house.channel.refuse = RemovedFromChannelError()
    async with living(house) as (room, task):
        assert await ended(house, task) == "expelled"
        assert not room.opened.is_set()


async def test_joining_is_broken_off_when_the_room_is_asked_to_end(house: House) -> None:
    """/leave while Discord's voice server does not answer ends the room at once, and not after the time that a
    connection may take. Nothing is left of the session.
    """
    house.channel.reachable.clear()
    async with living(house, opens=False) as (room, task):
        await settle(lambda: house.channel.connecting)
        assert await leave(room, task) == "left"
        assert not room.opened.is_set()
    assert house.channel.connections == []
    assert await house.sessions.recent() == ()


@pytest.mark.parametrize(
    ("reason", "heard"), [(PROCESS_ENDS, "One two three four. (interrupted)"), ("left", "One two (interrupted)")]
)
async def test_a_sentence_may_end_when_the_process_does(house: House, reason: str, heard: str) -> None:
    """When the process ends in mid-sentence, the sentence is played to its end and the next one is not begun. When the
    bot is sent away, it falls silent at once. Both are recorded once, as far as they were heard.
    """
    house.new_responder = lambda _: ScriptedResponder("One two three four. ", "Five six seven eight.")
    async with living(house) as (room, task):
        connection = house.channel.connections[-1]
        connection.pulling = False
        await house.say(ADA.id, "Roomtone, count to eight.")
        await settle(lambda: len(house.voice.spoken) == 2)
        connection.pull(2 * FRAMES_A_WORD)
        room.close(reason)
        await loop_turns(20)
        connection.pull(100)
        assert await ended(house, task) == reason
    spoken = [turn for turn in house.turns if turn.kind is TurnKind.ASSISTANT]
    assert [part.text for turn in spoken for part in turn.parts] == [heard]


async def test_while_a_sentence_ends_people_are_heard_and_not_answered(house: House) -> None:
    """What is said while the process ends becomes a turn, also over the bot's sentence, and nobody is answered."""
    responder = ScriptedResponder("One two three four.")
    house.new_responder = lambda _: responder
    async with living(house) as (room, task):
        connection = house.channel.connections[-1]
        connection.pulling = False
        await house.say(ADA.id, "Roomtone, count to four.")
        await settle(lambda: len(house.voice.spoken) == 1)
        connection.pull(2)
        room.close(PROCESS_ENDS)
        await house.say(BO.id, "Roomtone, and what comes after four?")
        connection.pulling = True
        assert await ended(house, task) == PROCESS_ENDS
    # Bo has interrupted the answer, so it is recorded before what they said.
    assert house.said[1:] == ["Roomtone: One (interrupted)", "Bo: Roomtone, and what comes after four?"]
    assert len(responder.contexts) == 1


async def test_what_fails_in_the_process_is_told_once_in_the_channel(house: House) -> None:
    """People who talk when the GPU fails learn why texts come later, and the dashboard shows it. A room that opens
    afterwards does not tell it, but shows it.
    """
    for told in (1, 0):
        async with living(house):
            house.channel.written.clear()
            house.process_faults = house.process_faults or [gpu_fails(since=house.clock.monotonic())]
            (fault,) = house.process_faults
            await house.pass_time(4 * CHECK_ROOM_S, step_s=CHECK_ROOM_S)
            assert house.channel.written.count(fault.sentence) == told
            assert [event.faults for event in house.of(events.FaultsFound)] == [(fault,)]
            house.seen.clear()


def gpu_fails(*, since: float) -> HealthFault:
    """Return the fault of a GPU that fails since then."""
    return HealthFault(FaultKind.MODELS, Text("The GPU does not work."), since=since, blocks=False, over=verbatim(""))


class FullDisk:
    """A turn store whose disk can be full."""

    def __init__(self, store: SqlTurnStore) -> None:
        self._store = store
        self.full = False

    def __getattr__(self, name: str) -> object:
        return getattr(self._store, name)

    async def append_turn(self, session_id: SessionId, turn: Turn) -> Turn:
        if self.full:
            raise StoreError("The disk is full. Make room.")
        return await self._store.append_turn(session_id, turn)


async def test_a_full_disk_is_told_once_and_loses_no_turn(house: House) -> None:
    """A full disk is reported once in the channel, and the turns of that time are stored when there is space again."""
    assert isinstance(house.store, SqlTurnStore)
    disk = FullDisk(house.store)
    house.store = disk  # type: ignore[assignment]  # a store but for the one method
    async with living(house):
        disk.full = True
        await house.say(ADA.id, "One thing I said to you.")
        await house.say(BO.id, "Two things I said to you.")
        disk.full = False
        await house.say(ADA.id, "Three things I said to you.")
        opened = house.of(events.RoomOpened)[0]
        stored = await house.store.load(opened.session_id)  # type: ignore[arg-type]
    assert [turn.seq for turn in stored.window] == [0, 1, 2]
    begun, over = house.channel.written
    assert "The disk is full. Make room." in begun
    assert over == database_fault(StoreError("")).over


def kinds(room: Room) -> list[FaultKind]:
    """Return the kinds of what is wrong in a room."""
    return [fault.kind for fault in room.faults()]


async def test_a_bot_that_somebody_mutes_or_deafens_says_so(house: House, room: Room) -> None:
    """The channel says once why nobody hears the bot, or it hears nobody, and the list has it. While it is muted no
    model works for an answer that nobody can hear.
    """
    house.channel.written.clear()
    house.channel.muted, house.channel.audible = True, False
    await house.pass_time(4 * CHECK_ROOM_S, step_s=CHECK_ROOM_S)
    assert house.channel.written == [MUTED.sentence]
    assert kinds(room) == [MUTED.kind]
    await house.say(ADA.id, "Roomtone, what time is it?")
    decided = house.of(events.TurnDecided)[-1]
    assert decided.reason == "silenced"
    house.channel.muted, house.channel.audible = False, True
    house.channel.deafened = True
    await house.pass_time(4 * CHECK_ROOM_S, step_s=CHECK_ROOM_S)
    assert house.channel.written == [MUTED.sentence, MUTED.over, DEAFENED.sentence]
    assert kinds(room) == [DEAFENED.kind]
    house.channel.deafened = False
    await house.pass_time(4 * CHECK_ROOM_S, step_s=CHECK_ROOM_S)
    assert house.channel.written == [MUTED.sentence, MUTED.over, DEAFENED.sentence, DEAFENED.over]
    assert kinds(room) == []


STARTED_AT = 1_700_000_000.0
EMPTY_S = 60.0
HOUR_S = 3_600.0


def limits() -> SessionLimits:
    """Return the limits of a session that began at `STARTED_AT`."""
    return SessionLimits(started_at=STARTED_AT, leave_when_empty_s=EMPTY_S)


@pytest.mark.parametrize(
    ("settings", "looks", "expected"),
    [
        (ServerSettings(), [(0, False), (59, False)], None),
        (ServerSettings(), [(0, False), (60, False)], "empty"),
        (ServerSettings(), [(0, True), (600, True)], None),
        (ServerSettings(), [(0, False), (30, True), (40, False), (99, False)], None),
        (ServerSettings(), [(0, False), (30, True), (40, False), (100, False)], "empty"),
        (ServerSettings(leave_when_empty_s=5.0), [(0, False), (5, False)], "empty"),
        (ServerSettings(leave_when_empty_s=600.0), [(0, False), (60, False)], None),
    ],
)
def test_an_empty_room_is_left_after_the_servers_time(
    settings: ServerSettings, looks: list[tuple[float, bool]], expected: str | None
) -> None:
    """The time counts from the first look at an empty room; somebody who comes back resets it. `looks`: seconds, and
    whether people are in the channel.
    """
    session = limits()
    reached = [
        session.check(settings, accompanied=accompanied, epoch=STARTED_AT + at, now=at) for at, accompanied in looks
    ]
    assert reached == [*(None for _ in looks[1:]), None if expected is None else ReachedLimit(expected)]


def test_the_length_of_a_session_is_that_of_all_its_rooms() -> None:
    """A room that resumes a session an hour after its start ends it with the first look, also with people in it."""
    settings = ServerSettings(longest_session_h=1)
    assert limits().check(settings, accompanied=True, epoch=STARTED_AT + HOUR_S - 1, now=0.0) is None
    reached = limits().check(settings, accompanied=True, epoch=STARTED_AT + HOUR_S, now=0.0)
    assert reached is not None
    assert reached.reason == "longest"
    assert limits().check(ServerSettings(), accompanied=True, epoch=STARTED_AT + 99 * HOUR_S, now=0.0) is None
