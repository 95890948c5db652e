"""The bot comes and goes along by itself, and stays away from where it was sent away."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest
from structlog.testing import capture_logs

from bot.channel.port import Person
from bot.room.announcer import NotAnnouncedError
from bot.room.auto_joiner import MOST_MISSED
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
@pytest.mark.parametrize("rests", [True, False])
async def test_it_stays_away_though_the_room_did_not_end_in_order(
    monkeypatch: pytest.MonkeyPatch, *, rests: bool
) -> None:
    """Somebody sends it away while a room that has crashed is to start again, or the room crashes while it ends."""
    house, place = House(), FakePlace(people=[ADA])
    await house.servers.change(place.guild_id, lambda _: ServerSettings(auto_join_with=(ADA.id,)), by=1)
    async with house.supervisor as rooms:
        await rooms.join(place)
        room = house.rooms[0]
        crash = partial(room.end.set_exception, LinkError("Discord hung up."))
        if rests:
            crash()
            await until(lambda: house.clock.sleeping == 1)
        else:
            monkeypatch.setattr(room, "close", lambda _: crash())
        assert await rooms.leave(place.guild_id)
        rooms.on_arrival(place, ADA, came_from=None)
        await until(lambda: not house.is_visiting)
    assert len(house.rooms) == 1


@pytest.mark.asyncio
async def test_it_stays_away_from_where_it_was_about_to_come() -> None:
    """Somebody has moved it, and sends it away before the next room has opened there."""
    house, lounge, side = House(), FakePlace(people=[ADA]), FakePlace(channel_id=21, people=[BO])
    await house.servers.change(lounge.guild_id, lambda _: ServerSettings(auto_join_with=(ADA.id, BO.id)), by=1)
    async with house.supervisor as rooms:
        await rooms.join(lounge)
        house.rooms[0].stored.clear()
        rooms.on_bot_moved(side)
        leaving = asyncio.create_task(rooms.leave(lounge.guild_id), name="leaving")
        await asyncio.sleep(0)
        house.rooms[0].stored.set()
        assert await leaving
        for place, person in ((lounge, ADA), (side, BO)):
            rooms.on_arrival(place, person, came_from=None)
            await until(lambda: not house.is_visiting)
    assert len(house.rooms) == 1


@pytest.mark.asyncio
@pytest.mark.parametrize(("reason", "comes"), [("empty", True), ("longest", False), ("expelled", False)])
async def test_who_comes_back_while_the_bot_leaves_an_empty_channel_is_not_passed_over(
    reason: str, *, comes: bool
) -> None:
    """Nobody else would bring it: they are there already when it has left. Who sent it away does not want it back."""
    house, place = House(), FakePlace(people=[ADA])
    await house.servers.change(place.guild_id, lambda _: ServerSettings(auto_join_with=(ADA.id,)), by=1)
    async with house.supervisor as rooms:
        await rooms.join(place)
        house.rooms[0].end_by_itself(reason)
        rooms.on_arrival(place, ADA, came_from=None)
        assert house.is_visiting is comes
        house.rooms[0].end.set_result(reason)
        await until(lambda: rooms.room_count == comes and not house.is_visiting)
    assert (len(house.rooms), place.written) == (1 + comes, [])


@pytest.mark.asyncio
async def test_whoever_calls_it_keeps_it() -> None:
    """Somebody arrives in one channel, and before the bot has set out, somebody calls it into another one."""
    house, lounge, side = House(), FakePlace(people=[ADA]), FakePlace(channel_id=21, people=[BO])
    await house.servers.change(lounge.guild_id, lambda _: ServerSettings(auto_join_with=(ADA.id,)), by=1)
    async with house.supervisor as rooms:
        rooms.on_arrival(lounge, ADA, came_from=None)
        await rooms.join(side)
        await until(lambda: not house.is_visiting)
        assert [room.place for room in house.rooms] == [side]
        assert not house.rooms[0].end.done()
    assert lounge.written == side.written == []


@pytest.mark.asyncio
async def test_it_does_not_come_again_and_again_where_nobody_can_be_told() -> None:
    """Without the permission to write, each arrival would let it come and go. It waits until the channel is empty."""
    house, place = House(), FakePlace(people=[ADA, BO])
    await house.servers.change(place.guild_id, lambda _: ServerSettings(auto_join_with=(ADA.id,)), by=1)
    house.fails_to_open = NotAnnouncedError("I may not write here.")
    async with house.supervisor as rooms:
        for _ in range(2):
            rooms.on_arrival(place, ADA, came_from=None)
            await until(lambda: not house.is_visiting)
        assert len(house.rooms) == 1
        place.people = []
        rooms.on_departure(place)
        place.people = [ADA]
        rooms.on_arrival(place, ADA, came_from=None)
        await until(lambda: len(house.rooms) == 2 and not house.is_visiting)
    assert place.written == ["I could not come by myself. I may not write here."]


@pytest.mark.asyncio
async def test_a_defect_that_keeps_it_from_coming_is_told() -> None:
    """Whoever waits for the bot reads that it could not come, and nothing of an error that may quote anybody."""
    house, place = House(), FakePlace(people=[ADA])
    await house.servers.change(place.guild_id, lambda _: ServerSettings(auto_join_with=(ADA.id,)), by=1)
    async with house.supervisor as rooms:
        house.fails_to_open = KeyError("Ada said so")
        rooms.on_arrival(place, ADA, came_from=None)
        await until(lambda: not house.is_visiting)
    assert place.written == ["I could not come by myself. Something in me broke."]


@pytest.mark.asyncio
async def test_a_visit_that_fails_of_a_defect_is_logged_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody awaits it. The next arrival begins another one."""
    house, place = House(), FakePlace(people=[ADA])
    await house.servers.change(place.guild_id, lambda _: ServerSettings(auto_join_with=(ADA.id,)), by=1)

    def break_off() -> Text | None:
        raise KeyError

    async with house.supervisor as rooms:
        with monkeypatch.context() as patched, capture_logs() as logs:
            patched.setattr(place, "refusal", break_off)
            rooms.on_arrival(place, ADA, came_from=None)
            await until(lambda: not house.is_visiting)
        assert [line["task"] for line in logs if line["event"] == "task_failed"] == [f"visit-{place.guild_id}"]
        rooms.on_arrival(place, ADA, came_from=None)
        await until(lambda: bool(house.rooms))


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
        with pytest.raises(RemovedFromChannelError, match="took me out"):
            await joining
        await until(lambda: rooms.room_count == 0)
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
@pytest.mark.parametrize("is_expelled", [True, False])
async def test_it_goes_along_with_nobody_when_it_was_taken_out(*, is_expelled: bool) -> None:
    """Its room takes time to end, and the person whom it follows goes to another channel meanwhile."""
    house, lounge, side = House(), FakePlace(people=[ADA]), FakePlace(channel_id=21, people=[])
    rules = ServerSettings(auto_join_with=(ADA.id,), follow="people")
    await house.servers.change(lounge.guild_id, lambda _: rules, by=1)
    async with house.supervisor as rooms:
        await rooms.join(lounge)
        house.rooms[0].stored.clear()
        house.rooms[0].close("expelled" if is_expelled else "longest")
        lounge.people, side.people = [], [ADA]
        rooms.on_arrival(side, ADA, came_from=lounge.channel_id)
        await until(lambda: not house.is_visiting)
        house.rooms[0].stored.set()
        await until(lambda: rooms.place_of(lounge.guild_id) is not lounge)
        assert rooms.place_of(lounge.guild_id) is (None if is_expelled else side)


HUB, SIDE, YARD = 20, 21, 22


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("moves", "then", "ends_in"),
    [
        pytest.param([(HUB, SIDE)], "opens", SIDE, id="moved on"),
        pytest.param([(HUB, YARD), (YARD, SIDE)], "opens", SIDE, id="moved on twice"),
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
    house = House()
    places = {number: FakePlace(channel_id=number, people=[]) for number in (HUB, SIDE, YARD)}
    rules = ServerSettings(auto_join_with=(ADA.id,), follow="people")
    await house.servers.change(10, lambda _: rules, by=1)
    async with house.supervisor as rooms:
        house.opens = False
        places[HUB].people = [ADA]
        rooms.on_arrival(places[HUB], ADA, came_from=None)
        await until(lambda: bool(house.rooms))
        places[HUB].people.append(BO)
        rooms.on_arrival(places[HUB], BO, came_from=None)
        for before, after in moves:
            if before is not None:
                places[before].people.remove(ADA)
                rooms.on_departure(places[before])
            if after is not None:
                places[after].people.append(ADA)
                rooms.on_arrival(places[after], ADA, came_from=before)
        house.opens = True
        match then:
            case "opens":
                house.rooms[0].opened.set()
            case "left":
                await rooms.leave(10)
            case _:
                house.rooms[0].close("not_joined")
        await until(lambda: not house.is_visiting)
        await until(lambda: rooms.place_of(10) is rooms.room_place(10))
        stays = rooms.place_of(10)
        assert (None if stays is None else stays.channel_id) == ends_in


@pytest.mark.asyncio
async def test_it_goes_along_twice_although_its_room_takes_time_to_end() -> None:
    """Somebody goes on before the bot has followed them: it goes to the second channel instead of the first one."""
    house = House()
    lounge, hub, side = (FakePlace(channel_id=number, people=[]) for number in (YARD, HUB, SIDE))
    rules = ServerSettings(auto_join_with=(ADA.id,), follow="people")
    await house.servers.change(10, lambda _: rules, by=1)
    async with house.supervisor as rooms:
        await rooms.join(lounge)
        house.rooms[0].stored.clear()
        hub.people = [ADA]
        rooms.on_arrival(hub, ADA, came_from=lounge.channel_id)
        await until(house.rooms[0].end.done)
        await until(lambda: not house.is_visiting)
        hub.people, side.people = [], [ADA]
        rooms.on_arrival(side, ADA, came_from=hub.channel_id)
        await until(lambda: not house.is_visiting)
        house.rooms[0].stored.set()
        await until(lambda: rooms.place_of(10) is side)
        assert len(house.rooms) == 2


@pytest.mark.asyncio
async def test_what_is_kept_of_a_crowd_is_bounded() -> None:
    """However many people move while the bot is coming, those beyond the first hundred are not kept."""
    house, hub, side = House(), FakePlace(channel_id=HUB, people=[ADA]), FakePlace(channel_id=SIDE, people=[])
    await house.servers.change(10, lambda _: ServerSettings(auto_join_with=(ADA.id,)), by=1)
    async with house.supervisor as rooms:
        house.opens = False
        rooms.on_arrival(hub, ADA, came_from=None)
        for number in range(MOST_MISSED + 50):
            rooms.on_arrival(side, Person(100 + number, "Somebody", is_bot=False), came_from=None)
        assert len(rooms._auto_joiner._missed[10]) == MOST_MISSED
        await until(lambda: bool(house.rooms))
        house.rooms[0].opened.set()
        await until(lambda: not house.is_visiting)
        assert rooms._auto_joiner._missed == {}


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


@pytest.mark.asyncio
async def test_few_reasons_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bot of many servers runs for months, and a reason may name what changes. The oldest one is written again."""
    monkeypatch.setattr("bot.room.auto_joiner.MOST_TOLD", 2)
    house, place = House(), FakePlace(people=[ADA])
    await house.servers.change(place.guild_id, lambda _: ServerSettings(auto_join_with=(ADA.id,)), by=1)
    async with house.supervisor as rooms:
        for number in (1, 2, 1, 3, 1, 2):
            place.refused = Text("No room {number}.", number=number)
            rooms.on_arrival(place, ADA, came_from=None)
            await until(lambda: not house.is_visiting)
        assert len(rooms._auto_joiner._told) == 2
    assert [line.rsplit(maxsplit=1)[-1] for line in place.written] == ["1.", "2.", "3.", "2."]
