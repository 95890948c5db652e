"""People in the local Discord speak and hear; real sockets on 127.0.0.1, half a second a clip."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

import pytest

from rehearsal.discord.network import NetworkConditions
from rehearsal.errors import PersonError
from tests.rehearsal.people.room import ADA, BEN, CLEO, Room, heard_all

if TYPE_CHECKING:
    from rehearsal.people.clip import Clip
    from tests.rehearsal.people.room import Room


@pytest.mark.asyncio
async def test_two_people_hear_each_other(room: Room, clip: Clip) -> None:
    """Every packet arrives and decrypts, both ways."""
    async with room.two() as (ada, ben):
        assert await heard_all(ben, ada, clip) == 1
        assert await heard_all(ada, ben, clip) == 1
        assert ada.counts.dave_failures == ben.counts.dave_failures == 0


@pytest.mark.asyncio
async def test_what_was_said_is_told_in_order(room: Room, clip: Clip) -> None:
    """The times of the voice lie inside the times of the clip, and nothing stayed unsent."""
    async with room.two() as (ada, _):
        said = await ada.say(clip)
        assert said.started_at < said.speech_started_at < said.speech_ended_at
        assert (said.sent_packets, said.unsent_packets) == (len(clip.packets), 0)


@pytest.mark.asyncio
async def test_padding_and_reordering_lose_nothing(room: Room, clip: Clip) -> None:
    """What the network does to packets is undone: all of them are heard."""
    room.discord.network.update(NetworkConditions(padding=0.3, reorder=0.3).as_dict())
    async with room.two() as (ada, ben):
        assert await heard_all(ben, ada, clip) == 1
        assert ben.counts.dave_failures == 0


@pytest.mark.asyncio
async def test_somebody_joins_in_mid_speech(room: Room, clip: Clip) -> None:
    """A new member re-keys the call while Ada speaks; Ben misses nothing, and Cleo hears the next words."""
    async with room.two() as (ada, ben), asyncio.TaskGroup() as tasks:
        talk = tasks.create_task(heard_all(ben, ada, clip))
        async with room.person(CLEO) as cleo:
            await cleo.meet(ADA)
            assert await talk == 1
            assert await heard_all(cleo, ada, clip) == 1
        assert await heard_all(ben, ada, clip) == 1


@pytest.mark.asyncio
async def test_nobody_can_speak_to_an_empty_room(room: Room, clip: Clip) -> None:
    """Alone there are no keys; that is a plain sentence, not a hang."""
    async with room.person(ADA) as ada:
        with pytest.raises(PersonError, match="no keys to speak with"):
            await ada.say(clip, ready_timeout_s=0.05)


@pytest.mark.asyncio
async def test_silence_of_another_is_told(room: Room) -> None:
    """Waiting for somebody who says nothing ends with their number in a sentence."""
    async with room.two() as (ada, _):
        with pytest.raises(PersonError, match=f"heard nothing of member {BEN}"):
            await ada.wait_for_sound(BEN, since=time.monotonic(), timeout_s=0.05)


@pytest.mark.asyncio
async def test_a_cancelled_clip_leaves_the_person_able(room: Room, clip: Clip) -> None:
    """Stopped in mid-word, the person can speak again at once."""
    async with room.two() as (ada, ben):
        talk = asyncio.create_task(ada.say(clip))
        await ben.wait_for_sound(ADA, since=0.0, timeout_s=5)
        talk.cancel()
        with pytest.raises(asyncio.CancelledError):
            await talk
        assert await heard_all(ben, ada, clip) == 1
