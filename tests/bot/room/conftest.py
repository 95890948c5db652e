"""The services of rooms, for the tests of rooms."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest_asyncio

from tests.bot.room.room_scene import House, a_house


@pytest_asyncio.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    """Services with an empty database."""
    async with a_house(tmp_path) as opened:
        yield opened
