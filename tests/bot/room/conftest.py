"""The services of rooms, for the tests of rooms."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest_asyncio

from bot.room.room import Room
from tests.bot.room.room_scene import House, a_house, living


@pytest_asyncio.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    """Services with an empty database."""
    async with a_house(tmp_path) as opened:
        yield opened


@pytest_asyncio.fixture
async def room(house: House) -> AsyncIterator[Room]:
    """A room that is open."""
    async with living(house) as (opened, _):
        yield opened
