"""A connected bridge, for the tests of realtime sessions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest_asyncio

from tests.bot.realtime.bridge_scene import BridgeDesk, desk

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


@pytest_asyncio.fixture
async def room() -> AsyncIterator[BridgeDesk]:
    """A bridge with a tool that echoes."""
    async with desk() as opened:
        yield opened
