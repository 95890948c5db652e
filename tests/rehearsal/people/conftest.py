"""A real local Discord on 127.0.0.1, and a clip short enough for tests in real time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import pytest_asyncio

from rehearsal.discord.guild import GuildSpec, Member
from rehearsal.discord.server import LocalDiscord
from tests.rehearsal.people.room import NAMES, Room
from tests.rehearsal.people.sounds import clip_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from rehearsal.people.clip import Clip


@pytest_asyncio.fixture
async def room() -> AsyncIterator[Room]:
    """Open a local Discord with three members."""
    people = tuple(Member(user_id, name) for user_id, name in NAMES.items())
    async with LocalDiscord(guild=GuildSpec(people=people)) as discord:
        yield Room(discord)


@pytest.fixture
def clip(tmp_path: Path) -> Clip:
    """Return half a second of voice between two tenths of silence."""
    return clip_of(tmp_path)
