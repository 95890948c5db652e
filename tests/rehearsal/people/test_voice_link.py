"""A person's voice connection recovers from faults, over real sockets on 127.0.0.1."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from rehearsal.errors import PersonError
from rehearsal.people.person import ScriptedPerson
from tests.rehearsal.people.room import ADA, BEN, Room, heard_all

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rehearsal.people.clip import Clip
    from tests.rehearsal.people.room import Room


async def test_a_broken_websocket_is_resumed(room: Room, clip: Clip) -> None:
    """After the websocket breaks, the same session is resumed and the person is heard."""
    async with room.two() as (ada, ben):
        await room.discord.fault("kill_voice_websocket", user_id=ADA)
        await ben.say(clip)
        assert await heard_all(ben, ada, clip) == 1
        assert (ada.sessions, ada.resumes) == (1, 1)


@pytest.mark.parametrize("close_code", [4006, 4009, 4014, 4015])
async def test_a_closed_session_is_made_anew(room: Room, clip: Clip, close_code: int) -> None:
    """Whatever code the server closes with, the person reconnects and is heard."""
    async with room.two() as (ada, ben):
        await room.discord.fault("kill_voice_websocket", user_id=ADA, close_code=close_code)
        await ben.say(clip)
        await ada.meet(BEN)
        await ben.meet(ADA)
        assert await heard_all(ben, ada, clip) == 1
        assert ada.sessions + ada.resumes == 2


@pytest.mark.parametrize("fault", ["malformed_proposals", "invalid_commit"])
async def test_garbage_from_the_group_is_survived(room: Room, clip: Clip, fault: str) -> None:
    """A person who gets a message that MLS refuses leaves the group and joins it again without losing the call."""
    async with room.two() as (ada, ben):
        await room.discord.fault(fault, user_id=ADA)
        await ben.say(clip)
        assert await heard_all(ben, ada, clip) == 1
        assert await heard_all(ada, ben, clip) == 1
        assert ada.sessions == 1


async def test_a_closed_door_is_told(room: Room) -> None:
    """A wrong token raises one clear error."""

    async def join() -> Mapping[str, Any]:
        admission = (await room.discord.join(ADA)).as_dict()
        return {**admission, "server": {**admission["server"], "token": "wrong"}}

    stranger = ScriptedPerson(user_id=ADA, name="Ada", join=join, tls=room.tls)
    with pytest.raises(PersonError, match="Member 41001"):
        await stranger.__aenter__()
