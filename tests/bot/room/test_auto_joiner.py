"""The bot comes and goes along by itself, and stays away from where it was sent away."""

from __future__ import annotations

import asyncio

import pytest

from bot.server_settings import ServerSettings
from bot.texts.text import Text
from tests.fakes.brain import until
from tests.fakes.place import ADA, BO, OTHER_BOT, FakePlace
from tests.fakes.rooms import House
from voice.errors import LinkError, RemovedFromChannelError


@pytest.mark.asyncio
async def test_it_comes_by_itself_and_not_again_where_it_was_sent_away() -> None:
    """With enough people the bot comes. After /leave it stays away until the channel has been empty."""
    house, place = House(), FakePlace(people=[ADA])
    rules = ServerSettings(auto_join_channels=(place.channel_id,), auto_join_people=2)
    await house.servers.change(place.guild_id, lambda _: rules, by=1)
    async with house.supervisor as rooms:
        rooms.on_arrival(place, ADA, came_from=None)
        rooms.on_arrival(place, OTHER_BOT, came_from=None)
        place.people = [ADA, BO]
        rooms.on_arrival(place, BO, came_from=None)
        rooms.on_arrival(place, BO, came_from=None)
        await until(lambda: len(house.rooms) == 1 and not house.is_visiting)
        await rooms.leave(place.guild_id)
        rooms.on_arrival(place, BO, came_from=None)
        rooms.on_departure(place)
        rooms.on_arrival(place, BO, came_from=None)
        assert rooms.place_of(place.guild_id) is None
        place.people = []
        rooms.on_departure(place)
        place.people = [ADA, BO]
        rooms.on_arrival(place, BO, came_from=None)
        await until(lambda: len(house.rooms) == 2 and house.rooms[1].opened.is_set())
    assert place.written == []


@pytest.mark.asyncio
async def test_a_channel_that_became_empty_while_the_room_ended_is_not_declined() -> None:
    """Nobody is left there who sent the bot away, so it comes to the next gathering."""
    house, place = House(), FakePlace(people=[ADA, BO])
    rules = ServerSettings(auto_join_channels=(place.channel_id,), auto_join_people=2)
    await house.servers.change(place.guild_id, lambda _: rules, by=1)
    async with house.supervisor as rooms:
        await rooms.join(place)
        house.rooms[0].stored.clear()
        leaving = asyncio.create_task(rooms.leave(place.guild_id), name="leaving")
        await until(house.rooms[0].end.done)
        place.people = []
        rooms.on_departure(place)
        house.rooms[0].stored.set()
        assert await leaving
        place.people = [ADA, BO]
        rooms.on_arrival(place, BO, came_from=None)
        await until(lambda: len(house.rooms) == 2 and house.rooms[1].opened.is_set())


@pytest.mark.asyncio
async def test_being_taken_out_before_it_is_connected_is_told_and_respected() -> None:
    """Whoever called the bot reads why it did not come, and it does not come by itself either."""
    house, place = House(), FakePlace(people=[ADA])
    await house.servers.change(place.guild_id, lambda _: ServerSettings(auto_join_with=(ADA.id,)), by=1)
    async with house.supervisor as rooms:
        house.opens = False
        joining = asyncio.create_task(rooms.join(place), name="joining")
        await until(lambda: bool(house.rooms))
        house.rooms[0].close("expelled")
        with pytest.raises(RemovedFromChannelError, match="took the bot out"):
            await joining
        assert rooms.room_count == 0
        rooms.on_arrival(place, ADA, came_from=None)
        await until(lambda: not house.is_visiting)
    assert len(house.rooms) == 1


@pytest.mark.asyncio
async def test_it_goes_along_with_the_last_one() -> None:
    """When the last person goes to another channel, the room ends there and the next one opens here."""
    house, lounge, side = House(), FakePlace(people=[ADA, BO]), FakePlace(channel_id=21, people=[])
    await house.servers.change(lounge.guild_id, lambda _: ServerSettings(follow="everybody"), by=1)
    async with house.supervisor as rooms:
        await rooms.join(lounge)
        lounge.people, side.people = [BO], [ADA]
        rooms.on_arrival(side, ADA, came_from=lounge.channel_id)
        await asyncio.sleep(0)
        assert not house.rooms[0].end.done()
        lounge.people, side.people = [], [ADA, BO]
        rooms.on_arrival(side, BO, came_from=lounge.channel_id)
        await until(lambda: rooms.place_of(lounge.guild_id) is side)
        assert house.rooms[0].end.result() == "moved"


@pytest.mark.asyncio
async def test_a_visit_that_fails_is_explained_once() -> None:
    """What is missing is written into the channel once, not at each arrival."""
    house, place = House(), FakePlace(people=[ADA])
    await house.servers.change(place.guild_id, lambda _: ServerSettings(auto_join_with=(ADA.id,)), by=1)
    async with house.supervisor as rooms:
        for refused in (Text("No room."), Text("No room."), None):
            place.refused = refused
            house.fails_to_open = None if refused else LinkError("Discord hung up.")
            rooms.on_arrival(place, ADA, came_from=None)
            await until(lambda: not house.is_visiting)
    assert place.written == [
        "I could not come by myself. No room.",
        "I could not come by myself. Discord hung up.",
    ]
