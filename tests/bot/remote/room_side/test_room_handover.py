"""A room whose process has to end is handed over to another one, or leaves."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest

from bot import events
from bot.participation.unrecorded_speech import UnrecordedUtterance
from bot.remote.link.hello import RoomRefusedError
from bot.remote.room_side.handover_pause import PATIENCE_S, PAUSE_S, WITHIN_S
from bot.remote.room_side.room_host import (
    GRACE_S,
    NOT_WANTED,
)
from bot.room.endings import HANDED_OVER, HandedOverError, ProcessLostError
from bot.texts.text import Text
from tests.bot.remote.peers import linked, until
from tests.bot.remote.remote_room_scene import (
    ADA,
    BO,
    SESSION,
    TURN,
    House,
    Life,
    living,
    pass_time,
)
from voice.asr.port import Recognition
from voice.listening.utterance import Utterance


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
async def test_the_next_process_goes_on_with_what_the_one_before_had_begun() -> None:
    """It knows which session ran until now, however old its last turn is, and who has had the notice."""
    async with living() as life:
        clock = life.house.clock
        assert life.distant.guild is not None
        life.distant.guild.tell("words", frozenset({ADA}))
        guild = await life.house.participation.of_guild(10)
        await until(lambda: guild.consent.told)
        life.distant.close(HANDED_OVER)
        with pytest.raises(HandedOverError):
            await life.task
        ended_at = clock.monotonic()
    houses: list[House] = []
    async with linked(room=lambda end: houses.append(House(end))) as ends:
        (house,) = houses
        house.clock, house.participation = clock, life.house.participation
        clock.advance(3.0)
        following = Life(house, ends, house.room(ends.gateway))
        await until(lambda: following.room.opened.is_set() or following.task.done())
        told = following.distant.told
        assert told.ran_s_ago == clock.monotonic() - ended_at
        there = await house.distant.of_guild(10)
        assert there.consent.told_by("words") == {ADA}
        now = house.host._clock.monotonic()
        assert there.running_session(now, within_s=told.ran_s_ago) == SESSION
        assert there.running_session(now, within_s=told.ran_s_ago - 1) is None
        following.room.close("left")
        assert await following.task == "left"
        await following.hosting


@pytest.mark.asyncio
async def test_the_next_process_gets_what_a_lost_one_had_heard_and_not_recorded() -> None:
    """Of two sentences one is a turn already, and somebody has opted out when the process is lost."""
    async with living() as life:
        for utterance_id, speaker_id in (("one", BO), ("two", BO), ("three", ADA)):
            life.distant.observe(events.UtteranceTranscribed(utterance_id, speaker_id, "And then?", 7.0, 9.0, 9.5))
        sound = Utterance("one", BO, 7.0, 9.0, 9.2, np.zeros(0, np.int16))
        spoken = events.SpokenText(sound, Recognition("And then?", "en", -0.2, 1.0, 0.0, 2.0, 0.1), 9.2, 9.5)
        life.distant.observe(events.TurnRecorded(TURN, 10.0, (spoken,)))
        guild = await life.house.participation.of_guild(10)
        await until(lambda: [each.utterance_id for each in guild.unrecorded.utterances(0.0)] == ["two", "three"])
        await life.house.participation.set_opt_out(10, ADA, out=True)
        assert life.house.seat is not None
        life.house.seat.died.set()
        with pytest.raises(ProcessLostError):
            await life.task
    houses: list[House] = []
    async with linked(room=lambda end: houses.append(House(end))) as ends:
        (house,) = houses
        house.clock, house.participation = life.house.clock, life.house.participation
        house.clock.advance(3.0)
        following = Life(house, ends, house.room(ends.gateway))
        await until(lambda: following.room.opened.is_set() or following.task.done())
        left = (UnrecordedUtterance("two", BO, "Bo", "And then?", 5.5, 3.5),)
        assert following.distant.told.unrecorded == left
        there = await house.distant.of_guild(10)
        assert there.unrecorded.utterances(house.host._clock.monotonic()) == left
        # The next room has begun, so it has recorded that.
        await until(lambda: not guild.unrecorded.utterances(0.0))
        following.room.close("left")
        assert await following.task == "left"
        await following.hosting


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
async def test_a_room_that_was_given_up_does_not_wait_for_a_pause() -> None:
    """It waits for one because its machine leaves; then another process has the room."""
    async with living() as life:
        life.distant.busy = True
        life.stop.set()
        await pass_time(life, GRACE_S + 1)
        assert not life.distant.end.done()
        life.ends.room._refused.set_result(RoomRefusedError(Text("This room is another process's.")))
        await pass_time(life, 0.5)
        assert life.distant.end.done()
        assert life.distant.end.result() == HANDED_OVER


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
