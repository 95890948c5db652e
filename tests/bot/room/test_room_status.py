"""What /status says about a room."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.bot.room.room_scene import a_house, living
from tests.fakes.hearing import speech
from tests.fakes.place import ADA, BO

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.asyncio
async def test_the_state_is_told_in_sentences(tmp_path: Path) -> None:
    """The status says where the bot is, for how long, with how many people, what it remembers and what it left out."""
    async with a_house(tmp_path) as house, living(house) as (room, _):
        await house.say(ADA.id, "The first thing that was said.")
        await house.pass_time(57.0, step_s=1.0)
        assert room.status() == (
            "I have been in Lounge for 1 minute, with 2 people. I remember 1 turn of this session. "
            "This call is end-to-end encrypted; compare its privacy code with yours: 12345 67890. "
            "I kept silent 1 time (not meant for me: 1). I speak in the mode engaged. I answer with what I heard."
        )
        house.place.links[-1].hear(speech(BO.id, at=house.clock.monotonic(), seconds=0.1))
        await house.pass_time(2.0)
        assert "I left out 1 sound (1 too short). This call is end-to-end encrypted" in room.status()
        house.place.links[-1].privacy_code = ""
        assert "(1 too short). This call is not end-to-end encrypted, so Discord's servers could" in room.status()
        house.ailing = "The voice kokoro has not worked for 3 minutes; the embedded voice speaks."
        assert room.status().endswith(f"I answer with what I heard. {house.ailing}")


@pytest.mark.asyncio
async def test_a_broken_connection_is_told(tmp_path: Path) -> None:
    """The status says since when nobody is heard, and nothing of it once the connection is back."""
    async with a_house(tmp_path) as house, living(house) as (room, _):
        link = house.place.links[-1]
        link.down_since = house.clock.monotonic()
        await house.pass_time(4.0, step_s=1.0)
        assert "My voice connection broke 4 s ago and is being made anew; until then I hear nobody." in room.status()
        link.down_since = None
        assert "broke" not in room.status()
        link.round_trip_s = 0.021
        assert "The voice server answers in 21 ms." in room.status()


@pytest.mark.asyncio
async def test_a_room_says_that_it_has_not_joined_yet(tmp_path: Path) -> None:
    """Before the room is open there is nothing else to tell."""
    async with a_house(tmp_path) as house:
        assert house.room().status() == "I am coming to Lounge."
