"""The rooms of all guilds are opened and ended; the last command of a guild wins."""

from __future__ import annotations

import asyncio

import pytest
from structlog.typing import EventDict

from bot.channel.port import MembershipChange
from bot.errors import SetupError
from bot.health import FaultKind, Health, HealthFault
from bot.room.guild_room import PAUSE_S, RESTARTING, WITHIN_S, until_pause
from bot.room.lifecycle import DATABASE_PAUSE_S, MOST_CRASHES
from bot.room.room import Room
from bot.room.rooms import DRAINING, Rooms
from bot.server_settings import ListenRequest
from bot.store.claims import STALE
from bot.texts.text import Text
from compaction.errors import StaleOwnerError, StoreError
from rehearsal.roomtone.evenings.virtual_time import LoopClock, run_virtually
from tests.fakes.brain import until
from tests.fakes.room_channel import ADA, FakeRoomChannel
from tests.fakes.rooms import FakeRoom, StateHouse
from tests.fakes.virtual_time import virtually
from voice.errors import TakenOverError, VoiceConnectionError


@pytest.fixture
def house() -> StateHouse:
    """Rooms without anything in them."""
    return StateHouse()


@pytest.fixture
def channel() -> FakeRoomChannel:
    """The voice channel into which the bot comes."""
    return FakeRoomChannel()


async def test_a_room_is_joined_asked_and_left(house: StateHouse, channel: FakeRoomChannel) -> None:
    """A guild has one room. A second /join is refused, and /leave reports whether there was a room."""
    async with house.running as rooms:
        assert not await rooms.leave(channel.guild_id)
        await rooms.join(channel)
        assert rooms.room_channel_of(channel.guild_id) is channel
        assert rooms.status(channel.guild_id) == "Everything works.\nI am in Lounge."
        assert rooms.open(channel.guild_id) is house.rooms[-1].as_room
        with pytest.raises(SetupError, match=r"already.*/leave"):
            await rooms.join(channel)
        assert await rooms.leave(channel.guild_id)
        assert rooms.room_channel_of(channel.guild_id) is None
        assert "/join" in rooms.status(channel.guild_id)
        assert rooms.open(channel.guild_id) is None
        await rooms.join(channel)
    assert [room.end.result() for room in house.rooms] == ["left", "stopped"]


@pytest.mark.parametrize(
    ("commands", "comes"),
    [
        (["leave"], False),
        (["leave", "join"], True),
        (["leave", "join", "leave"], False),
        (["leave", "join", "leave", "join"], True),
    ],
)
async def test_the_last_command_wins(house: StateHouse, commands: list[str], comes: bool) -> None:
    """Commands that follow each other while the room is still ending: the last one says whether the bot is there."""
    async with house.running as rooms:
        await rooms.join(FakeRoomChannel())
        house.rooms[0].stored.clear()
        told = []
        for command in commands:
            channel = FakeRoomChannel()
            wish = rooms.join(channel) if command == "join" else rooms.leave(channel.guild_id)
            told.append(asyncio.ensure_future(wish))
            await asyncio.sleep(0)
            assert rooms.room_channel_of(channel.guild_id) is (channel if command == "join" else None)
        house.rooms[0].stored.set()
        *replaced, last = await asyncio.gather(*told, return_exceptions=True)
        assert not isinstance(last, BaseException)
        assert [type(each) for each in replaced if isinstance(each, BaseException)] == [SetupError] * (
            commands[:-1].count("join")
        )
        assert (rooms.room_channel_of(FakeRoomChannel().guild_id) is not None) is comes
    assert len(house.rooms) == 1 + comes


async def test_nothing_is_told_of_a_room_that_is_ending(house: StateHouse, channel: FakeRoomChannel) -> None:
    """The bot counts as away or as coming to the next channel then, so somebody may ask who may not see the old one."""
    async with house.running as rooms:
        await rooms.join(channel)
        old = house.rooms[0]
        old.stored.clear()
        leaving = asyncio.create_task(rooms.leave(channel.guild_id))
        await until(lambda: rooms.room_channel_of(channel.guild_id) is None)
        assert "not in a voice channel" in rooms.status(channel.guild_id)
        assert rooms.open(channel.guild_id) is None
        joining = asyncio.create_task(rooms.join(FakeRoomChannel()))
        await until(lambda: rooms.room_channel_of(channel.guild_id) is not None)
        assert f"coming to {channel.name}" in rooms.status(channel.guild_id)
        assert rooms.open(channel.guild_id) is None
        old.stored.set()
        await leaving
        await joining
        assert f"I am in {channel.name}." in rooms.status(channel.guild_id)


@virtually
async def test_who_calls_the_bot_does_not_wait_for_ever_for_a_room_that_ends(
    house: StateHouse, channel: FakeRoomChannel
) -> None:
    """One that takes too long is cut off, also if nobody has asked it to end. Nobody resumes its session."""
    async with Rooms(house.make, clock=house.clock, end_session=house.end_session) as rooms:
        await rooms.join(channel)
        house.rooms[0].end_by_itself("longest")
        await rooms.join(channel)
        assert house.rooms[0].end.cancelled()
        assert (rooms.room_channel_of(channel.guild_id), len(house.rooms)) == (channel, 2)
        assert house.sessions_ended == [channel]


async def test_movements_reach_the_room_of_that_channel_alone(house: StateHouse, channel: FakeRoomChannel) -> None:
    """A room gets the membership changes of its own channel only."""
    joined = MembershipChange(ADA, joined=True)
    async with house.running as rooms:
        await rooms.join(channel)
        rooms.on_membership(channel.guild_id, channel.channel_id, joined)
        rooms.on_membership(channel.guild_id, 999, joined)
        rooms.on_membership(12, channel.channel_id, joined)
        assert house.rooms[0].moves == [joined]


async def test_a_process_has_so_many_rooms_and_no_more(house: StateHouse, channel: FakeRoomChannel) -> None:
    """Who calls it into a further one is told to wait. Its own guild's room, which ends, does not count."""
    other = FakeRoomChannel(guild_id=11)
    async with Rooms(house.make, clock=house.clock, max_rooms=1) as rooms:
        await rooms.join(channel)
        assert rooms.full(other.guild_id) is not None
        with pytest.raises(SetupError, match="as many voice channels"):
            await rooms.join(other)
        assert rooms.full(channel.guild_id) is None
        await rooms.leave(channel.guild_id)
        await rooms.join(other)


async def test_abandoned_rooms_end_without_a_goodbye(house: StateHouse, channel: FakeRoomChannel) -> None:
    """Abandoned rooms are cancelled without an orderly end, as after a SIGKILL."""
    async with house.running as rooms:
        await rooms.join(channel)
        await rooms.abandon()
        assert rooms.room_channel_of(channel.guild_id) is None
    assert house.rooms[0].end.cancelled()


async def test_faults_are_those_of_its_rooms_and_of_restarts_and_the_end(
    house: StateHouse, channel: FakeRoomChannel
) -> None:
    """The faults are each room's, one for a room that is started again, and one while all rooms end."""
    other = FakeRoomChannel(guild_id=11)
    deaf = HealthFault(FaultKind.ROOM_DEAF, Text("I hear nobody."))
    async with house.running as rooms:
        await rooms.join(channel)
        await rooms.join(other)
        assert rooms.faults() == []
        house.rooms[0].found = [deaf]
        assert rooms.faults() == [deaf]
        house.rooms[1].end.set_exception(ValueError("broken"))
        await until(lambda: RESTARTING in rooms.faults())
        assert rooms.faults() == [deaf, RESTARTING]
        await house.clock.until_somebody_sleeps()
        house.clock.advance(60.0)
        await until(lambda: rooms.faults() == [deaf])
    assert rooms.faults() == [DRAINING]


@pytest.mark.parametrize("joins", [True, False])
async def test_the_status_says_first_what_is_wrong_in_the_process_and_in_the_room(
    house: StateHouse, channel: FakeRoomChannel, *, joins: bool
) -> None:
    """Also where the bot is not in a channel; what both say, once. Only without any of it does everything work."""
    full = HealthFault(FaultKind.DISK, Text("The disk is full."), since=house.clock.monotonic() - 60.0)
    deaf = HealthFault(FaultKind.ROOM_DEAF, Text("I hear nobody."))
    process, health = [full], Health(house.clock)
    health.started()
    health.add_check(lambda: process)
    rooms = Rooms(house.make, clock=house.clock, health=health)
    async with rooms:
        if joins:
            await rooms.join(channel)
            house.rooms[0].found = [deaf, full]
        first, *others = rooms.status(channel.guild_id).splitlines()
        assert "The disk is full." in first
        assert "60 seconds" in first
        assert [each.split(".")[0] for each in others[:-1]] == ["I hear nobody"] * joins
        assert "Everything works." not in rooms.status(channel.guild_id)
        process.clear()
        if joins:
            house.rooms[0].found = []
        assert rooms.status(channel.guild_id).startswith("Everything works.")


class VirtualClock(LoopClock):
    """The clock of the virtual loop."""

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class BusyRoom(Room):
    """A room in which somebody speaks in these spans of seconds."""

    def __init__(self, clock: VirtualClock, *spoken: tuple[float, float]) -> None:
        self._clock, self._spoken, self._begun_at = clock, spoken, clock.monotonic()

    def is_busy(self) -> bool:
        now = self._clock.monotonic() - self._begun_at
        return any(begins <= now < ends for begins, ends in self._spoken)


def waited_s(*spoken: tuple[float, float]) -> float:
    """Return how long is waited while somebody speaks in these spans of seconds."""

    async def wait() -> float:
        clock = VirtualClock()
        begun_at = clock.monotonic()
        await until_pause(BusyRoom(clock, *spoken), clock)
        return clock.monotonic() - begun_at

    return run_virtually(wait())


@pytest.mark.parametrize(
    ("spoken", "expected_s"),
    [
        ((), PAUSE_S),
        (((0.0, 3.0),), 3.7),
        (((0.0, 3.0), (3.3, 5.0)), 5.5),
        (((0.0, 9.0),), 9.1),
        (((0.0, 60.0),), WITHIN_S),
    ],
)
def test_the_first_pause_that_is_long_enough_is_taken(
    spoken: tuple[tuple[float, float], ...], expected_s: float
) -> None:
    """A second at first, and less and less; in mid-sentence where nobody pauses."""
    assert waited_s(*spoken) == pytest.approx(expected_s, abs=0.15)


def test_a_room_that_is_handed_over_leaves_its_session_open() -> None:
    """The next process goes on with it. Nobody can open another room here."""

    async def hand_over() -> None:
        house, channel = StateHouse(), FakeRoomChannel()
        async with Rooms(house.make, clock=VirtualClock(), end_session=house.end_session) as rooms:
            await rooms.join(channel)
            await rooms.hand_over()
            assert house.rooms[0].end.result() == "handed_over"
            assert house.sessions_ended == []
            assert rooms.faults() != [], "it takes no more rooms"

    run_virtually(hand_over())


async def test_a_crash_is_told_and_mended_and_touches_no_other_room(
    house: StateHouse, channel: FakeRoomChannel
) -> None:
    """A crash is reported in the channel and the room starts again after a pause. Other rooms are not affected."""
    other = FakeRoomChannel(guild_id=11)
    async with house.running as rooms:
        await rooms.join(channel)
        await rooms.join(other)
        house.rooms[0].end.set_exception(ExceptionGroup("tasks", [ValueError("secret words")]))
        await until(lambda: house.clock.sleeping == 1)
        assert channel.written == [
            "Something went wrong inside me. I start again in 1 second. What was said before is safe."
        ]
        house.clock.advance(1.0)
        await until(lambda: len(house.rooms) == 3 and house.rooms[2].opened.is_set())
        assert not house.rooms[1].end.done()
        assert other.written == []


async def test_a_session_that_the_database_does_not_end_is_ended_later(
    house: StateHouse, channel: FakeRoomChannel, logs: list[EventDict]
) -> None:
    """Who has sent the bot away does not get it back at its next start, once the database answers again. The log says
    that it may come back before.
    """
    house.database_away = StoreError("The database is away.")
    async with Rooms(house.make, clock=house.clock, end_session=house.end_session) as rooms:
        await rooms.join(channel)
        house.rooms[0].left_session_open = True
        assert await rooms.leave(channel.guild_id)
        for tries in (2, 3):
            await until(lambda: house.clock.sleeping == 1)
            house.clock.advance(DATABASE_PAUSE_S)
            await until(lambda tries=tries: house.endings_tried == tries)  # type: ignore[misc]
        house.database_away = None
        await until(lambda: house.clock.sleeping == 1)
        house.clock.advance(DATABASE_PAUSE_S)
        await until(lambda: house.sessions_ended == [channel])
        assert house.clock.sleeping == 0
    assert [line["event"] for line in logs].count("session_left_open") == 1


async def test_a_room_waits_for_the_database_however_long_it_is_away(
    house: StateHouse, channel: FakeRoomChannel, logs: list[EventDict]
) -> None:
    """A room that crashes in an outage is not given up. The channel is told once, and health shows it."""
    async with house.running as rooms:
        await rooms.join(channel)
        house.fails_to_open = StoreError("The database is away.")
        house.rooms[0].end.set_exception(VoiceConnectionError("Discord hung up."))
        await until(lambda: house.clock.sleeping == 1)
        house.clock.advance(1.0)
        for attempt in range(2 * MOST_CRASHES):
            await until(lambda attempt=attempt: (len(house.rooms), house.clock.sleeping) == (attempt + 2, 1))  # type: ignore[misc]
            assert rooms.faults() == [RESTARTING]
            if attempt == 2 * MOST_CRASHES - 1:
                house.fails_to_open = None
            house.clock.advance(DATABASE_PAUSE_S)
        await until(lambda: rooms.faults() == [])
        assert house.rooms[-1].opened.is_set()
        assert [line["event"] for line in logs].count("room_not_opened") == 1
        waits = f"The database is away. I try again every {DATABASE_PAUSE_S:g} seconds."
        assert sum(told.startswith(waits) for told in channel.written) == 1
        # It has crashed twice by now.
        house.rooms[-1].end.set_exception(VoiceConnectionError("Discord hung up."))
        await until(lambda: channel.written[-1].startswith("Discord hung up. I start again in 2 seconds"))


@pytest.mark.parametrize("error", [StaleOwnerError(STALE), TakenOverError()])
async def test_a_room_that_another_process_has_taken_over_stays_ended(
    house: StateHouse, channel: FakeRoomChannel, error: Exception, logs: list[EventDict]
) -> None:
    """It is not started again, even if somebody has just moved the bot; the log and the channel say why."""
    other = FakeRoomChannel(channel_id=30)
    async with house.running as rooms:
        await rooms.join(channel)
        house.rooms[0].end.set_exception(ExceptionGroup("tasks", [error]))
        rooms.on_bot_moved(other)
        await until(lambda: rooms.current_channel(channel.guild_id) is None)
        assert len(house.rooms) == 1
    assert channel.written == [str(error)]
    assert [(each["event"], each["log_level"]) for each in logs] == [("room_taken_over", "error")]


@virtually
async def test_a_room_that_does_not_end_is_cut_off(
    house: StateHouse, channel: FakeRoomChannel, monkeypatch: pytest.MonkeyPatch, logs: list[EventDict]
) -> None:
    """Neither one that takes too long to close nor one that resists its end keeps the process."""
    stuck: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def resist() -> str:
        house.rooms[0].opened.set()
        try:
            return await stuck
        except asyncio.CancelledError:
            await asyncio.shield(let_go.wait())
            raise

    let_go = asyncio.Event()
    monkeypatch.setattr(FakeRoom, "run", lambda _: resist())
    async with house.running as rooms:
        await rooms.join(channel)
    assert [line["event"] for line in logs] == ["room_close_timed_out"]
    let_go.set()
    await until(lambda: rooms.room_channel_of(channel.guild_id) is None)


async def test_a_bot_that_is_dragged_opens_a_room_where_it_is_now(house: StateHouse, channel: FakeRoomChannel) -> None:
    """If the bot is moved, the old room ends in order and a new one opens in the other channel. That room can be left
    or moved too.
    """
    side, attic = FakeRoomChannel(channel_id=21), FakeRoomChannel(channel_id=22)
    async with house.running as rooms:
        await rooms.join(channel)
        rooms.on_bot_moved(FakeRoomChannel(guild_id=11))
        for there in (side, attic):
            rooms.on_bot_moved(there)
            await until(lambda: house.rooms[-1].channel is there and house.rooms[-1].opened.is_set())  # noqa: B023
            assert rooms.room_channel_of(channel.guild_id) is there
        assert await rooms.leave(channel.guild_id)
        assert rooms.room_channel_of(channel.guild_id) is None
    assert [room.end.result() for room in house.rooms] == ["moved", "moved", "left"]
    assert channel.written == side.written == attic.written == []


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        (None, None),
        (ListenRequest("file", 601), ListenRequest("file", 601)),
        # The chat of the channel that it leaves.
        (ListenRequest("thread", 20), ListenRequest("thread", 21)),
    ],
)
async def test_a_bot_that_only_writes_down_does_so_where_it_is_moved(
    house: StateHouse, channel: FakeRoomChannel, asked: ListenRequest | None, expected: ListenRequest | None
) -> None:
    """What is said there is not written into the chat of the voice channel that it came from."""
    side = FakeRoomChannel(channel_id=21)
    async with house.running as rooms:
        joining = asyncio.create_task(rooms.join(channel, listen=asked))
        await until(lambda: bool(house.rooms))
        await asyncio.sleep(0)
        rooms.on_bot_moved(side)
        await until(lambda: len(house.rooms) == 2)
        assert house.rooms[1].channel is side
        assert house.listens == [asked, expected]
        house.rooms[1].opened.set()
        await joining
