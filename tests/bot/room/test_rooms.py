"""The rooms of all guilds are opened and ended; the last command of a guild wins."""

from __future__ import annotations

import asyncio

import pytest

from bot.channel.port import MembershipChange, UnfinishedWords
from bot.errors import SetupError
from bot.health import FaultKind, HealthFault
from bot.room import guild_room
from bot.room.guild_room import RESTARTING
from bot.room.rooms import DRAINING, Rooms
from tests.fakes.brain import until
from tests.fakes.place import ADA, FakePlace
from tests.fakes.rooms import House
from voice.errors import LinkError


async def test_a_room_is_joined_asked_and_left() -> None:
    """A guild has one room. A second /join is refused, and /leave reports whether there was a room."""
    house, place = House(), FakePlace()
    async with house.running as rooms:
        assert not await rooms.leave(place.guild_id)
        await rooms.join(place)
        assert rooms.place_of(place.guild_id) is place
        assert rooms.status(place.guild_id) == "I am in Lounge."
        house.rooms[-1].words = (UnfinishedWords("Ada", "the key is"),)
        assert rooms.unfinished(place.guild_id) == (UnfinishedWords("Ada", "the key is"),)
        with pytest.raises(SetupError, match=r"already.*/leave"):
            await rooms.join(place)
        assert await rooms.leave(place.guild_id)
        assert rooms.place_of(place.guild_id) is None
        assert "/join" in rooms.status(place.guild_id)
        assert rooms.unfinished(place.guild_id) == ()
        await rooms.join(place)
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
async def test_the_last_command_wins(commands: list[str], comes: bool) -> None:
    """Commands that follow each other while the room is still ending: the last one says whether the bot is there."""
    house = House()
    async with house.running as rooms:
        await rooms.join(FakePlace())
        house.rooms[0].stored.clear()
        told = []
        for command in commands:
            place = FakePlace()
            wish = rooms.join(place) if command == "join" else rooms.leave(place.guild_id)
            told.append(asyncio.ensure_future(wish))
            await asyncio.sleep(0)
            assert rooms.place_of(place.guild_id) is (place if command == "join" else None)
        house.rooms[0].stored.set()
        *replaced, last = await asyncio.gather(*told, return_exceptions=True)
        assert not isinstance(last, BaseException)
        assert [type(each) for each in replaced if isinstance(each, BaseException)] == [SetupError] * (
            commands[:-1].count("join")
        )
        assert (rooms.place_of(FakePlace().guild_id) is not None) is comes
    assert len(house.rooms) == 1 + comes


async def test_nothing_is_told_of_a_room_that_is_ending() -> None:
    """The bot counts as away or as coming to the next channel then, so somebody may ask who may not see the old one."""
    house, place = House(), FakePlace()
    async with house.running as rooms:
        await rooms.join(place)
        old = house.rooms[0]
        old.words = (UnfinishedWords("Ada", "the key is"),)
        old.stored.clear()
        leaving = asyncio.create_task(rooms.leave(place.guild_id))
        await until(lambda: rooms.place_of(place.guild_id) is None)
        assert rooms.status(place.guild_id).startswith("I am not in a voice channel here.")
        assert rooms.unfinished(place.guild_id) == ()
        joining = asyncio.create_task(rooms.join(FakePlace()))
        await until(lambda: rooms.place_of(place.guild_id) is not None)
        assert rooms.status(place.guild_id) == f"I am coming to {place.name}."
        assert rooms.unfinished(place.guild_id) == ()
        old.stored.set()
        await leaving
        await joining
        assert rooms.status(place.guild_id) == f"I am in {place.name}."


async def test_who_calls_the_bot_does_not_wait_for_ever_for_a_room_that_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that takes too long is cut off, also if nobody has asked it to end. Nobody resumes its session."""
    monkeypatch.setattr(guild_room, "CLOSE_TIMEOUT_S", 0.0)
    house, place = House(), FakePlace()
    async with Rooms(house.make, clock=house.clock, end_session=house.end_session) as rooms:
        await rooms.join(place)
        house.rooms[0].end_by_itself("longest")
        await rooms.join(place)
        assert house.rooms[0].end.cancelled()
        assert (rooms.place_of(place.guild_id), len(house.rooms)) == (place, 2)
        assert house.sessions_ended == [place]


async def test_a_room_that_cannot_open_tells_who_asked() -> None:
    """If a room cannot open, the person who asked gets the error, and it is not tried again."""
    house, place = House(), FakePlace()
    house.fails_to_open = LinkError("No voice server answers. Try again.")
    async with house.running as rooms:
        with pytest.raises(LinkError, match="No voice server"):
            await rooms.join(place)
        await until(lambda: rooms.place_of(place.guild_id) is None)
    assert len(house.rooms) == 1
    assert place.written == []


async def test_movements_reach_the_room_of_that_channel_alone() -> None:
    """A room gets the membership changes of its own channel only."""
    house, place = House(), FakePlace()
    joined = MembershipChange(ADA, joined=True)
    async with house.running as rooms:
        await rooms.join(place)
        rooms.on_membership(place.guild_id, place.channel_id, joined)
        rooms.on_membership(place.guild_id, 999, joined)
        rooms.on_membership(12, place.channel_id, joined)
        assert house.rooms[0].moves == [joined]


async def test_abandoned_rooms_end_without_a_goodbye() -> None:
    """Abandoned rooms are cancelled without an orderly end, as after a SIGKILL."""
    house, place = House(), FakePlace()
    async with house.running as rooms:
        await rooms.join(place)
        await rooms.abandon()
        assert rooms.place_of(place.guild_id) is None
    assert house.rooms[0].end.cancelled()


async def test_faults_are_those_of_its_rooms_and_of_restarts_and_the_end() -> None:
    """The faults are each room's, one for a room that is started again, and one while all rooms end."""
    house, place, other = House(), FakePlace(), FakePlace(guild_id=11)
    deaf = HealthFault(FaultKind.ROOM_DEAF, "A room hears nobody.")
    async with house.running as rooms:
        await rooms.join(place)
        await rooms.join(other)
        assert (rooms.room_count, rooms.faults()) == (2, [])
        house.rooms[0].found = [deaf]
        assert rooms.faults() == [deaf]
        house.rooms[1].end.set_exception(ValueError("broken"))
        await until(lambda: RESTARTING in rooms.faults())
        assert rooms.faults() == [deaf, RESTARTING]
        await house.clock.until_somebody_sleeps()
        house.clock.advance(60.0)
        await until(lambda: rooms.faults() == [deaf])
    assert rooms.faults() == [DRAINING]
