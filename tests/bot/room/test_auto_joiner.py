"""The bot comes and goes along by itself, and stays away from where it was sent away."""

from __future__ import annotations

import asyncio

import pytest

from bot.room.auto_joiner import Arrival, BotStay, should_go
from bot.room.rooms import Rooms
from bot.server_settings import FollowRule, ServerSettings
from bot.texts.text import Text
from tests.fakes.brain import until
from tests.fakes.room_channel import ADA, BO, OTHER_BOT, FakeRoomChannel
from tests.fakes.rooms import StateHouse
from voice.errors import VoiceConnectionError


async def test_it_comes_by_itself_and_not_again_where_it_was_sent_away() -> None:
    """With enough people the bot comes. After /leave it stays away until the channel has been empty."""
    house, channel = StateHouse(), FakeRoomChannel(people=[ADA])
    rules = ServerSettings(auto_join_channels=(channel.channel_id,), auto_join_people=2)
    await house.servers.change(channel.guild_id, lambda _: rules, by=1)
    async with house.running as rooms:
        rooms.auto_joiner.on_arrival(channel, ADA, came_from=None)
        rooms.auto_joiner.on_arrival(channel, OTHER_BOT, came_from=None)
        channel.people = [ADA, BO]
        rooms.auto_joiner.on_arrival(channel, BO, came_from=None)
        rooms.auto_joiner.on_arrival(channel, BO, came_from=None)
        await until(lambda: len(house.rooms) == 1)
        await house.until_no_visit()
        await rooms.leave(channel.guild_id)
        rooms.auto_joiner.on_arrival(channel, BO, came_from=None)
        rooms.auto_joiner.on_departure(channel)
        rooms.auto_joiner.on_arrival(channel, BO, came_from=None)
        assert rooms.room_channel_of(channel.guild_id) is None
        channel.people = []
        rooms.auto_joiner.on_departure(channel)
        channel.people = [ADA, BO]
        rooms.auto_joiner.on_arrival(channel, BO, came_from=None)
        await until(lambda: len(house.rooms) == 2 and house.rooms[1].opened.is_set())
    assert channel.written == []


@pytest.mark.parametrize("stays", [True, False])
async def test_it_waits_for_a_free_place(*, stays: bool) -> None:
    """Nobody is told, and it does not come to who has left meanwhile."""
    house, channel, other = StateHouse(), FakeRoomChannel(people=[ADA]), FakeRoomChannel(guild_id=11)
    await house.servers.change(channel.guild_id, lambda _: ServerSettings(auto_join_with=(ADA.id,)), by=1)
    async with Rooms(house.make, clock=house.clock, servers=house.servers, max_rooms=1) as rooms:
        await rooms.join(other)
        rooms.auto_joiner.on_arrival(channel, ADA, came_from=None)
        await asyncio.sleep(0)
        assert rooms.room_channel_of(channel.guild_id) is None
        channel.people = [ADA] * stays
        await rooms.leave(other.guild_id)
        await house.until_no_visit()
        assert (rooms.room_channel_of(channel.guild_id) is channel) is stays
    assert channel.written == []


async def test_it_goes_along_with_the_last_one() -> None:
    """When the last person goes to another channel, the room ends there and the next one opens here."""
    house, lounge, side = StateHouse(), FakeRoomChannel(people=[ADA, BO]), FakeRoomChannel(channel_id=21, people=[])
    await house.servers.change(lounge.guild_id, lambda _: ServerSettings(follow="everybody"), by=1)
    async with house.running as rooms:
        await rooms.join(lounge)
        lounge.people, side.people = [BO], [ADA]
        rooms.auto_joiner.on_arrival(side, ADA, came_from=lounge.channel_id)
        await asyncio.sleep(0)
        assert not house.rooms[0].end.done()
        lounge.people, side.people = [], [ADA, BO]
        rooms.auto_joiner.on_arrival(side, BO, came_from=lounge.channel_id)
        await until(lambda: rooms.room_channel_of(lounge.guild_id) is side)
        assert house.rooms[0].end.result() == "moved"


HUB, SIDE, YARD = 20, 21, 22


@pytest.mark.parametrize(
    ("moves", "then", "ends_in"),
    [
        pytest.param([(HUB, SIDE)], "opens", SIDE, id="moved on"),
        pytest.param([(HUB, YARD), (YARD, SIDE)], "opens", SIDE, id="moved on twice"),
        pytest.param([(HUB, None), (None, YARD), (YARD, HUB), (HUB, SIDE)], "opens", SIDE, id="back, and moved on"),
        pytest.param([(HUB, SIDE), (SIDE, None)], "opens", HUB, id="gone"),
        pytest.param([(HUB, None), (None, SIDE)], "opens", HUB, id="gone and back elsewhere, followed by nobody"),
        pytest.param([(HUB, SIDE), (SIDE, HUB)], "opens", HUB, id="back"),
        pytest.param([(HUB, SIDE)], "fails", SIDE, id="the visit fails"),
        pytest.param([], "fails", None, id="the visit fails and is not repeated"),
        pytest.param([(HUB, SIDE)], "left", None, id="sent away meanwhile"),
    ],
)
async def test_who_moves_on_while_the_bot_is_coming_is_not_lost(
    moves: list[tuple[int | None, int | None]], then: str, ends_in: int | None
) -> None:
    """A hub moves people on before the bot is there: it goes along as soon as it can, if they still are there."""
    house = StateHouse()
    channels = {number: FakeRoomChannel(channel_id=number, people=[]) for number in (HUB, SIDE, YARD)}
    rules = ServerSettings(auto_join_with=(ADA.id,), follow="people")
    await house.servers.change(10, lambda _: rules, by=1)
    async with house.running as rooms:
        house.opens = False
        channels[HUB].people = [ADA]
        rooms.auto_joiner.on_arrival(channels[HUB], ADA, came_from=None)
        await until(lambda: bool(house.rooms))
        channels[HUB].people.append(BO)
        rooms.auto_joiner.on_arrival(channels[HUB], BO, came_from=None)
        for before, after in moves:
            if before is not None:
                channels[before].people.remove(ADA)
                rooms.auto_joiner.on_departure(channels[before])
            if after is not None:
                channels[after].people.append(ADA)
                rooms.auto_joiner.on_arrival(channels[after], ADA, came_from=before)
        house.opens = True
        match then:
            case "opens":
                house.rooms[0].opened.set()
            case "left":
                await rooms.leave(10)
            case _:
                house.rooms[0].close("not_joined")
        await house.until_no_visit()
        await until(lambda: rooms.room_channel_of(10) is rooms.current_channel(10))
        stays = rooms.room_channel_of(10)
        assert (None if stays is None else stays.channel_id) == ends_in


async def test_a_visit_that_fails_is_explained_once() -> None:
    """What is missing is written into the channel once, not at each arrival."""
    house, channel = StateHouse(), FakeRoomChannel(people=[ADA])
    await house.servers.change(channel.guild_id, lambda _: ServerSettings(auto_join_with=(ADA.id,)), by=1)
    async with house.running as rooms:
        for refused in (Text("No room."), Text("No room."), None):
            channel.refused = refused
            house.fails_to_open = None if refused else VoiceConnectionError("Discord hung up.")
            rooms.auto_joiner.on_arrival(channel, ADA, came_from=None)
            await house.until_no_visit()
    no_room, hung_up = channel.written
    assert "No room." in no_room
    assert "Discord hung up." in hung_up


LOUNGE, ELSEWHERE, FRIEND, STRANGER = 600, 602, 1, 2
BY_NUMBER = ServerSettings(auto_join_channels=(LOUNGE,), auto_join_people=2)
WITH_FRIEND = ServerSettings(auto_join_with=(FRIEND,))


@pytest.mark.parametrize(
    ("rules", "arrival", "goes"),
    [
        (ServerSettings(), Arrival(FRIEND, LOUNGE, 9), False),
        (BY_NUMBER, Arrival(FRIEND, LOUNGE, 1), False),
        (BY_NUMBER, Arrival(STRANGER, LOUNGE, 2), True),
        (BY_NUMBER, Arrival(STRANGER, LOUNGE, 3), True),
        (BY_NUMBER, Arrival(STRANGER, ELSEWHERE, 3), False),
        (BY_NUMBER, Arrival(STRANGER, LOUNGE, 2, declined=True), False),
        (WITH_FRIEND, Arrival(FRIEND, ELSEWHERE, 1), True),
        (WITH_FRIEND, Arrival(STRANGER, ELSEWHERE, 5), False),
        (WITH_FRIEND, Arrival(FRIEND, ELSEWHERE, 1, declined=True), False),
    ],
)
def test_it_comes_by_the_servers_rules(rules: ServerSettings, arrival: Arrival, goes: bool) -> None:
    """With enough people in a chosen channel, or with a chosen person, unless it was sent away from there."""
    assert should_go(rules, arrival, None) is goes


@pytest.mark.parametrize(
    ("follow", "person", "came_from", "left", "goes"),
    [
        ("nobody", FRIEND, LOUNGE, 0, False),
        ("people", FRIEND, LOUNGE, 3, True),
        ("people", FRIEND, None, 0, False),
        ("people", FRIEND, 604, 0, False),
        ("people", STRANGER, LOUNGE, 0, False),
        ("everybody", STRANGER, LOUNGE, 1, False),
        ("everybody", STRANGER, LOUNGE, 0, True),
        ("everybody", STRANGER, 604, 0, False),
    ],
)
def test_it_follows_by_the_servers_rule(
    follow: FollowRule, person: int, came_from: int | None, left: int, goes: bool
) -> None:
    """Only from the channel that it is in: with the chosen people, or with the last one who goes."""
    rules = ServerSettings(follow=follow, auto_join_with=(FRIEND,), auto_join_channels=(ELSEWHERE,), auto_join_people=1)
    assert should_go(rules, Arrival(person, ELSEWHERE, 1, came_from), BotStay(LOUNGE, left)) is goes
    assert not should_go(rules, Arrival(person, LOUNGE, 1, came_from), BotStay(LOUNGE, left))
