"""A connected bridge, for the tests of realtime sessions."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest_asyncio

from tests.bot.realtime.bridge_scene import BridgeDesk, desk


@pytest_asyncio.fixture
async def room() -> AsyncIterator[BridgeDesk]:
    """A bridge with a tool that echoes."""
    async with desk() as opened:
        yield opened
