"""After a crash the bot goes on with the sessions that were open, each for itself."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from bot.shards import ONLY_SHARD
from bot.store.database import open_database
from bot.store.dialects.port import BotLock
from bot.store.sessions import Sessions
from bot.wiring.rooms import end_open_session, rejoin_sessions
from tests.fakes.clock import FakeClock
from tests.fakes.room_channel import ADA as PERSON
from tests.fakes.room_channel import FakeRoomChannel
from tests.fakes.rooms import StateHouse


def client_in(*channels: FakeRoomChannel) -> Any:
    """Return a client that serves every server and knows these voice channels, on all of them."""
    known = {channel.channel_id: channel for channel in channels}

    async def serves(_: int) -> bool:
        return True

    return SimpleNamespace(
        admission=SimpleNamespace(serves=serves),
        find_channel=lambda _, channel_id: known.get(channel_id),
        logged_shard=lambda _: nullcontext(),
    )


def lock_of(*, has_rival: bool = False) -> BotLock:
    """Return the lock of a process. `has_rival`: another one has its servers."""

    async def look() -> bool:
        return has_rival

    return cast("BotLock", SimpleNamespace(has_rival=has_rival, look=look))


async def test_the_bot_comes_back_to_the_channel_that_it_was_in_last(tmp_path: Path) -> None:
    """A room that crashed while the bot was moved has left its session open."""
    clock, house = FakeClock(), StateHouse()
    given_up, last = FakeRoomChannel(people=[PERSON]), FakeRoomChannel(channel_id=21, people=[PERSON])
    async with open_database(tmp_path / "roomtone.db") as database:
        sessions = Sessions(database, clock)
        for channel in (given_up, last):
            await sessions.open(guild_id=channel.guild_id, channel_id=channel.channel_id, resume_within_s=0.0)
            clock.advance(60.0)
        stores = SimpleNamespace(sessions=sessions, servers=house.servers)
        async with house.running as rooms:
            await rejoin_sessions(client_in(given_up, last), rooms, cast("Any", stores), ONLY_SHARD)
    assert [room.channel for room in house.rooms] == [last]


async def test_a_channel_whose_session_was_ended_is_not_rejoined(tmp_path: Path) -> None:
    """Somebody has sent the bot away from one channel after a crash. The session of another server goes on."""
    house = StateHouse()
    left, other = FakeRoomChannel(people=[PERSON]), FakeRoomChannel(guild_id=11, channel_id=21, people=[PERSON])
    async with open_database(tmp_path / "roomtone.db") as database:
        sessions = Sessions(database, FakeClock())
        for channel in (left, other):
            await sessions.open(guild_id=channel.guild_id, channel_id=channel.channel_id, resume_within_s=0.0)
        await end_open_session(sessions, lock_of(), left)
        stores = SimpleNamespace(sessions=sessions, servers=house.servers)
        async with house.running as rooms:
            await rejoin_sessions(client_in(left, other), rooms, cast("Any", stores), ONLY_SHARD)
            assert (rooms.room_channel_of(left.guild_id), rooms.room_channel_of(other.guild_id)) == (None, other)


async def test_a_session_on_a_server_that_another_process_has_is_not_ended(tmp_path: Path) -> None:
    """That one's room may have taken it over while this process had no database."""
    channel = FakeRoomChannel(people=[PERSON])
    lock = lock_of(has_rival=True)
    async with open_database(tmp_path / "roomtone.db") as database:
        sessions = Sessions(database, FakeClock())
        opened = await sessions.open(guild_id=channel.guild_id, channel_id=channel.channel_id, resume_within_s=0.0)
        await end_open_session(sessions, lock, channel)
        assert await sessions.unfinished(resume_within_s=60.0) == (opened.session,)
