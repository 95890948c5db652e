"""Scripted people speak and hear each other in the local Discord, over real sockets and with half a second of voice."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

import pytest

from rehearsal.discord.media.network import NetworkConditions
from rehearsal.errors import PersonError
from tests.patience import PATIENCE_S
from tests.rehearsal.people.room import ADA, BEN, CLEO, Room, heard_all

if TYPE_CHECKING:
    from rehearsal.people.clip import Clip
    from tests.rehearsal.people.room import Room


@pytest.mark.asyncio
async def test_two_people_hear_each_other(room: Room, clip: Clip) -> None:
    """Every packet arrives and is decrypted in both directions."""
    async with room.two() as (ada, ben):
        assert await heard_all(ben, ada, clip) == 1
        assert await heard_all(ada, ben, clip) == 1
        assert ada.counts.dave_failures == ben.counts.dave_failures == 0


@pytest.mark.asyncio
async def test_what_was_said_is_told_in_order(room: Room, clip: Clip) -> None:
    """`say` reports times of the voice that lie inside the clip, and that every packet was sent."""
    async with room.two() as (ada, _):
        said = await ada.say(clip)
        assert said.started_at < said.speech_started_at < said.speech_ended_at
        assert (said.sent_packets, said.unsent_packets) == (len(clip.packets), 0)


@pytest.mark.asyncio
async def test_padding_and_reordering_lose_nothing(room: Room, clip: Clip) -> None:
    """With padding and reordering, all packets are still heard."""
    room.discord.network.update(NetworkConditions(padding=0.3, reorder=0.3).as_dict())
    async with room.two() as (ada, ben):
        assert await heard_all(ben, ada, clip) == 1
        assert ben.counts.dave_failures == 0


@pytest.mark.asyncio
async def test_somebody_joins_in_mid_speech(room: Room, clip: Clip) -> None:
    """When Cleo joins while Ada speaks, the keys change. Ben misses nothing, and Cleo hears what Ada says next."""
    async with room.two() as (ada, ben), asyncio.TaskGroup() as tasks:
        talk = tasks.create_task(heard_all(ben, ada, clip))
        async with room.person(CLEO) as cleo:
            await cleo.meet(ADA)
            assert await talk == 1
            assert await heard_all(cleo, ada, clip) == 1
        assert await heard_all(ben, ada, clip) == 1


@pytest.mark.asyncio
async def test_nobody_can_speak_to_an_empty_room(room: Room, clip: Clip) -> None:
    """Speaking alone in a channel raises a clear error after a timeout, because there are no keys."""
    async with room.person(ADA) as ada:
        with pytest.raises(PersonError, match="no keys to speak with"):
            await ada.say(clip, ready_timeout_s=0.05)


@pytest.mark.asyncio
async def test_silence_of_another_is_told(room: Room) -> None:
    """Waiting for a member who stays silent raises an error with that member's id."""
    async with room.two() as (ada, _):
        with pytest.raises(PersonError, match=f"heard nothing of member {BEN}"):
            await ada.wait_for_sound(BEN, since=time.monotonic(), timeout_s=0.05)


@pytest.mark.asyncio
async def test_a_cancelled_clip_leaves_the_person_able(room: Room, clip: Clip) -> None:
    """After `say` is cancelled, the person can speak again at once."""
    async with room.two() as (ada, ben):
        talk = asyncio.create_task(ada.say(clip))
        await ben.wait_for_sound(ADA, since=0.0, timeout_s=PATIENCE_S)
        talk.cancel()
        with pytest.raises(asyncio.CancelledError):
            await talk
        assert await heard_all(ben, ada, clip) == 1
