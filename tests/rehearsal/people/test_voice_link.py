"""A person's connection holds through what goes wrong on the way; real sockets on 127.0.0.1."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from rehearsal.errors import PersonError
from rehearsal.people.person import ScriptedPerson
from tests.rehearsal.people.room import ADA, BEN, Room, heard_all

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rehearsal.people.clip import Clip
    from tests.rehearsal.people.room import Room


@pytest.mark.asyncio
async def test_a_broken_websocket_is_resumed(room: Room, clip: Clip) -> None:
    """The session survives: no new one, the same SSRC, and the next words are heard."""
    async with room.two() as (ada, ben):
        await room.discord.fault("kill_voice_websocket", user_id=ADA)
        await ben.say(clip)
        assert await heard_all(ben, ada, clip) == 1
        assert (ada.sessions, ada.resumes) == (1, 1)


@pytest.mark.asyncio
@pytest.mark.parametrize("close_code", [4006, 4009, 4014, 4015])
async def test_a_closed_session_is_made_anew(room: Room, clip: Clip, close_code: int) -> None:
    """Whatever code the server closes with, the person comes back and is heard."""
    async with room.two() as (ada, ben):
        await room.discord.fault("kill_voice_websocket", user_id=ADA, close_code=close_code)
        await ben.say(clip)
        await ada.meet(BEN)
        await ben.meet(ADA)
        assert await heard_all(ben, ada, clip) == 1
        assert ada.sessions + ada.resumes == 2


@pytest.mark.asyncio
async def test_a_move_to_another_endpoint(room: Room, clip: Clip) -> None:
    """A VOICE_SERVER_UPDATE in mid-call changes the server; a new session speaks and hears."""
    async with room.two() as (ada, ben):
        told = await room.discord.fault("migrate", user_id=ADA)
        await ada.move(told["servers"][str(ADA)])
        await ben.say(clip)
        await ada.meet(BEN)
        await ben.meet(ADA)
        assert await heard_all(ben, ada, clip) == 1
        assert await heard_all(ada, ben, clip) == 1
        assert ada.sessions == 2


@pytest.mark.asyncio
@pytest.mark.parametrize("fault", ["malformed_proposals", "invalid_commit"])
async def test_garbage_from_the_group_is_survived(room: Room, clip: Clip, fault: str) -> None:
    """A message that MLS refuses makes a person leave the group and come back, without losing the call."""
    async with room.two() as (ada, ben):
        await room.discord.fault(fault, user_id=ADA)
        await ben.say(clip)
        assert await heard_all(ben, ada, clip) == 1
        assert await heard_all(ada, ben, clip) == 1
        assert ada.sessions == 1


@pytest.mark.asyncio
async def test_a_downgrade_and_an_upgrade(room: Room, clip: Clip) -> None:
    """Without end-to-end encryption people are heard, and with it again."""
    async with room.two() as (ada, ben):
        await room.discord.fault("downgrade", user_id=ADA)
        await ben.say(clip)
        assert (ada.dave_version, ben.dave_version) == (0, 0)
        assert await heard_all(ben, ada, clip) == 1
        await room.discord.fault("upgrade", user_id=ADA)
        await ben.say(clip)
        assert (ada.dave_version, ben.dave_version) == (1, 1)
        assert await heard_all(ben, ada, clip) == 1
        assert ben.counts.dave_failures == 0


@pytest.mark.asyncio
async def test_a_new_group_is_joined(room: Room, clip: Clip) -> None:
    """Op 24 with epoch 1 in the middle of a call costs no one the call."""
    async with room.two() as (ada, ben):
        await room.discord.fault("request_reset", user_id=ADA)
        await ben.say(clip)
        assert await heard_all(ben, ada, clip) == 1


@pytest.mark.asyncio
async def test_other_packets_are_not_heard(room: Room, clip: Clip) -> None:
    """RTCP and video on the same socket are counted as foreign and never decoded as speech."""
    async with room.two() as (ada, ben):
        await room.discord.fault("rtcp", user_id=BEN)
        await room.discord.fault("video", user_id=BEN)
        assert await heard_all(ben, ada, clip) == 1
        assert ben.counts.foreign == 40


@pytest.mark.asyncio
async def test_a_late_op_5_costs_no_packet(room: Room, clip: Clip) -> None:
    """The sender's key tells who speaks before op 5 does."""
    async with room.two() as (ada, ben):
        await room.discord.fault("late_speaking", user_id=ADA, delay_s=5.0)
        assert await heard_all(ben, ada, clip) == 1


@pytest.mark.asyncio
async def test_who_leaves_is_gone(room: Room) -> None:
    """After leaving nobody is in the channel, and no task or socket is left."""
    async with room.two():
        pass
    assert room.discord.status()["voice_states"] == []
    assert [task.get_name() for task in asyncio.all_tasks() if task.get_name().startswith("person-")] == []


@pytest.mark.asyncio
async def test_a_closed_door_is_told(room: Room) -> None:
    """A token that does not fit ends in one sentence, after a few tries."""

    async def join() -> Mapping[str, Any]:
        admission = (await room.discord.join(ADA)).as_dict()
        return {**admission, "server": {**admission["server"], "token": "wrong"}}

    stranger = ScriptedPerson(user_id=ADA, name="Ada", join=join, tls=room.tls)
    with pytest.raises(PersonError, match="Member 41001"):
        await stranger.__aenter__()
