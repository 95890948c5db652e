"""Fixtures: a local Discord on 127.0.0.1, and a clip that is short enough to be played in real time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import pytest_asyncio

from rehearsal.discord.guild.spec import GuildSpec, Member
from rehearsal.discord.server import LocalDiscord
from tests.rehearsal.people.room import NAMES, Room
from tests.rehearsal.people.sounds import clip_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from rehearsal.people.clip import Clip


@pytest_asyncio.fixture
async def room() -> AsyncIterator[Room]:
    """Start a local Discord with three members."""
    people = tuple(Member(user_id, name) for user_id, name in NAMES.items())
    async with LocalDiscord(guild=GuildSpec(people=people)) as discord:
        yield Room(discord)


@pytest.fixture
def clip(tmp_path: Path) -> Clip:
    """Return a clip with half a second of voice, and a tenth of a second of silence before and after."""
    return clip_of(tmp_path)
