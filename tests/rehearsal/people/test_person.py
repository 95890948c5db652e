"""Scripted people speak and hear each other in the local Discord, over real sockets and with half a second of voice."""

from __future__ import annotations

import asyncio

import pytest

from rehearsal.discord.media.forwarder import NetworkConditions
from rehearsal.people.clip import Clip
from tests.patience import PATIENCE_S
from tests.rehearsal.people.scene import ADA, CLEO, PeopleRoom, heard_all


async def test_padding_and_reordering_lose_nothing(room: PeopleRoom, clip: Clip) -> None:
    """With padding and reordering, all packets are still heard."""
    room.discord.network.update(NetworkConditions(padding=0.3, reorder=0.3).as_dict())
    async with room.two() as (ada, ben):
        assert await heard_all(ben, ada, clip) == 1
        assert ben.dave_failures == 0


async def test_somebody_joins_in_mid_speech(room: PeopleRoom, clip: Clip) -> None:
    """When Cleo joins while Ada speaks, the keys change. Ben misses nothing, and Cleo hears what Ada says next."""
    async with room.two() as (ada, ben), asyncio.TaskGroup() as tasks:
        talk = tasks.create_task(heard_all(ben, ada, clip))
        async with room.person(CLEO) as cleo:
            await cleo.meet(ADA)
            assert await talk == 1
            assert await heard_all(cleo, ada, clip) == 1
        assert await heard_all(ben, ada, clip) == 1


async def test_a_cancelled_clip_leaves_the_person_able(room: PeopleRoom, clip: Clip) -> None:
    """After `say` is cancelled, the person can speak again at once."""
    async with room.two() as (ada, ben):
        talk = asyncio.create_task(ada.say(clip))
        await ben.wait_for_sound(ADA, since=0.0, timeout_s=PATIENCE_S)
        talk.cancel()
        with pytest.raises(asyncio.CancelledError):
            await talk
        assert await heard_all(ben, ada, clip) == 1
