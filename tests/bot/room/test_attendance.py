"""Who was in a room's channel, and when, as the database has it."""

from __future__ import annotations

import pytest

from bot.channel.port import MembershipChange, Person
from bot.room.attendance import MEND_EVERY_S
from bot.room.room import Room
from bot.room.room_check import CHECK_ROOM_S
from bot.store.own_rows import forget_own_rows
from bot.viewers import Stay
from tests.bot.room.room_scene import House, ended, living
from tests.fakes.room_channel import ADA, BO

CY = Person(4, "Cy", False)
ROBOT = Person(9, "Robot", True)


async def stays(house: House) -> dict[str, tuple[Stay, ...]]:
    """Return the stays of Ada, Bo, Cy and the robot in the newest session, by name."""
    names = {str(each.id): each.name for each in (ADA, BO, CY, ROBOT)}
    (newest,) = await house.sessions.recent(limit=1)
    (found,) = (await house.sessions.attendance.of([newest.id], list(names))).values()
    return {names[person_id]: theirs for person_id, theirs in found.stays.items()}


async def move(house: House, room: Room, person: Person, *, joined: bool) -> float:
    """Let somebody come or go, have it stored, and return when it was."""
    others = [each for each in house.channel.people if each.id != person.id]
    house.channel.people = [*others, person] if joined else others
    at = house.clock.now()
    room.on_membership(MembershipChange(person, joined=joined))
    await house.pass_time(2 * CHECK_ROOM_S, step_s=1.0)
    return at


async def test_each_stay_is_stored_with_when_it_began_and_ended(house: House) -> None:
    """Whoever is there from the beginning, comes, leaves or comes back; the last stays end with the session."""
    async with living(house) as (room, task):
        house.channel.people = [ADA, BO, ROBOT]
        begun = house.clock.now()
        left = await move(house, room, BO, joined=False)
        came = await move(house, room, CY, joined=True)
        back = await move(house, room, BO, joined=True)
        assert await stays(house) == {
            "Ada": (Stay(begun),),
            "Bo": (Stay(begun, left), Stay(back)),
            "Cy": (Stay(came),),
        }
        room.close("asked")
        await ended(house, task)
        over = house.clock.now()
        assert {name: theirs[-1].left_at for name, theirs in (await stays(house)).items()} == {
            "Ada": over,
            "Bo": over,
            "Cy": over,
        }


async def test_who_opted_out_has_no_attendance(house: House) -> None:
    """It begins when they opt in again."""
    await house.participation.set_opt_out(house.channel.guild_id, BO.id, out=True)
    async with living(house):
        await house.pass_time(2 * CHECK_ROOM_S, step_s=1.0)
        assert set(await stays(house)) == {"Ada"}
        await house.participation.set_opt_out(house.channel.guild_id, BO.id, out=False)
        at = house.clock.now()
        await house.pass_time(2 * CHECK_ROOM_S, step_s=1.0)
        (stay,) = (await stays(house))["Bo"]
        assert at <= stay.came_at <= house.clock.now()


async def test_of_who_opts_out_right_after_coming_nothing_is_stored(house: House, room: Room) -> None:
    """What was noted and not stored yet is dropped."""
    house.channel.people = [*house.channel.people, CY]
    room.on_membership(MembershipChange(CY, joined=True))
    await house.participation.set_opt_out(house.channel.guild_id, CY.id, out=True)
    await house.pass_time(2 * CHECK_ROOM_S, step_s=1.0)
    assert set(await stays(house)) == {"Ada", "Bo"}


async def test_who_left_while_no_room_ran_was_there_until_the_crash(house: House) -> None:
    """The stays of the others go on."""
    async with living(house):
        await house.pass_time(2 * CHECK_ROOM_S, step_s=1.0)
        await house.say(ADA.id, "The gate code is 4411.")
    last = house.turns[-1].ended_at
    house.channel.people = [ADA]
    async with living(house):
        await house.pass_time(2 * CHECK_ROOM_S, step_s=1.0)
        found = await stays(house)
        assert [stay.left_at for stay in found["Ada"]] == [None]
        assert [stay.left_at for stay in found["Bo"]] == [last]


@pytest.mark.usefixtures("room")
async def test_who_is_forgotten_while_they_are_there_has_attendance_from_then_on(house: House) -> None:
    """The stay before is gone."""
    await house.pass_time(2 * CHECK_ROOM_S, step_s=1.0)
    async with house.database.writing() as connection:
        await forget_own_rows(connection, str(BO.id))
    at = house.clock.now()
    await house.pass_time(MEND_EVERY_S + 2 * CHECK_ROOM_S, step_s=1.0)
    (stay,) = (await stays(house))["Bo"]
    assert stay.came_at > at - 1.0
