"""A room whose process has to end is handed over to another one, or leaves."""

from __future__ import annotations

import asyncio

import pytest

from bot.remote.room_side.handover_pause import PATIENCE_S, PAUSE_S, WITHIN_S
from bot.remote.room_side.room_host import (
    GRACE_S,
    NOT_WANTED,
)
from bot.room.endings import HandedOverError
from tests.bot.remote.peers import linked, until
from tests.bot.remote.remote_room_scene import (
    House,
    living,
    pass_time,
)


@pytest.mark.asyncio
async def test_a_process_that_has_to_end_hands_its_room_over() -> None:
    """After a moment: whoever ends both processes at once lets the gateway process say why."""
    async with living() as life:
        life.stop.set()
        await until(lambda: life.house.clock.sleeping >= 2)
        await pass_time(life, GRACE_S + PAUSE_S)
        with pytest.raises(HandedOverError, match="had to end"):
            await life.task
        assert life.house.stays == [True]


@pytest.mark.asyncio
async def test_a_room_is_handed_over_in_a_pause_in_speech() -> None:
    """It stays while somebody speaks or the bot answers, and through a gap between two words."""
    async with living() as life:
        [room] = life.house.rooms
        room.busy = True
        life.stop.set()
        await pass_time(life, 10.0)
        room.busy = False
        await pass_time(life, PAUSE_S / 2)
        room.busy = True
        await pass_time(life, PAUSE_S)
        room.busy = False
        await pass_time(life, PAUSE_S / 2)
        assert not room.end.done()
        await pass_time(life, PAUSE_S)
        with pytest.raises(HandedOverError, match="had to end"):
            await life.task


@pytest.mark.asyncio
async def test_where_people_hardly_pause_a_room_is_handed_over_at_the_end_of_a_sentence() -> None:
    """It is not known yet whether the speaker has finished; an answer is waited for."""
    async with living() as life:
        [room] = life.house.rooms
        room.busy = room.answering = True
        life.house.quiet = PAUSE_S
        life.stop.set()
        await pass_time(life, GRACE_S + PATIENCE_S + 1)
        assert not room.end.done()
        room.answering = False
        await pass_time(life, 0.5)
        with pytest.raises(HandedOverError, match="had to end"):
            await life.task


@pytest.mark.asyncio
async def test_a_room_where_people_never_pause_is_handed_over_all_the_same() -> None:
    """Whoever ends a machine does not wait for the end of an evening."""
    async with living() as life:
        [room] = life.house.rooms
        room.busy = True
        life.stop.set()
        await pass_time(life, GRACE_S + WITHIN_S - 1)
        assert not room.end.done()
        await pass_time(life, 1.5)
        with pytest.raises(HandedOverError, match="had to end"):
            await life.task


@pytest.mark.asyncio
async def test_a_room_that_has_to_end_leaves_the_channel() -> None:
    """Both processes were told to end, and the gateway process says why: there is no next process."""
    async with living() as life:
        life.stop.set()
        await until(lambda: life.house.clock.sleeping >= 2)
        life.room.close("left")
        assert await life.task == "left"
        life.house.clock.advance(2.0)
        await life.hosting
        assert life.house.stays == []


@pytest.mark.asyncio
async def test_a_process_without_a_room_ends_when_it_is_told() -> None:
    """It has nothing to hand over."""
    houses: list[House] = []
    async with linked(room=lambda end: houses.append(House(end))):
        stop = asyncio.Event()
        stop.set()
        assert await houses[0].host.run(stop) == NOT_WANTED


@pytest.mark.asyncio
async def test_a_process_with_a_room_does_not_offer_itself_any_more() -> None:
    """It introduces itself as its room, so a gateway process that has given it up knows it."""
    async with living() as life:
        room = life.ends.room.room
        assert (room.guild_id, room.channel_id, room.run_id) == (10, 20, "one")
        assert (room.opened_by, room.listen) == ("mark", None)
