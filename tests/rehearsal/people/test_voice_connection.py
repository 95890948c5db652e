"""A person's voice connection survives garbage, and its loss is told, over real sockets on 127.0.0.1."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from rehearsal.errors import PersonError
from rehearsal.people.clip import Clip
from rehearsal.people.person import ScriptedPerson
from tests.rehearsal.people.scene import ADA, CLEO, PeopleRoom, heard_all


async def test_a_lost_call_is_told(room: PeopleRoom) -> None:
    """Whoever waits for something in the call gets one clear error when the websocket breaks."""
    async with room.two() as (ada, _):
        await room.discord.fault("kill_voice_websocket", user_id=ADA)
        with pytest.raises(PersonError, match="lost"):
            await ada.meet(CLEO)


@pytest.mark.parametrize("fault", ["malformed_proposals", "invalid_commit"])
async def test_garbage_from_the_group_is_survived(room: PeopleRoom, clip: Clip, fault: str) -> None:
    """A person who gets a message that MLS refuses leaves the group and joins it again without losing the call."""
    async with room.two() as (ada, ben):
        await room.discord.fault(fault, user_id=ADA)
        await ben.say(clip)
        assert await heard_all(ben, ada, clip) == 1
        assert await heard_all(ada, ben, clip) == 1


async def test_a_closed_door_is_told(room: PeopleRoom) -> None:
    """A wrong token raises one clear error."""

    async def join() -> Mapping[str, Any]:
        admission = (await room.discord.join(ADA)).as_dict()
        return {**admission, "server": {**admission["server"], "token": "wrong"}}

    stranger = ScriptedPerson(user_id=ADA, name="Ada", join=join, tls=room.tls)
    with pytest.raises(PersonError, match="Member 41001"):
        await stranger.__aenter__()
