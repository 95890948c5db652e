"""An open database of each kind, for the tests of the store."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest_asyncio

from bot.store.database import Database, open_database
from tests.bot.conftest import Place
from tests.bot.evening import Evening


@pytest_asyncio.fixture
async def database(place: Place) -> AsyncIterator[Database]:
    """An empty database."""
    async with open_database(place, synchronous="normal") as opened:
        yield opened


@pytest_asyncio.fixture
async def evening(place: Place) -> AsyncIterator[Evening]:
    """A session without turns, in an empty database."""
    async with Evening(place) as opened:
        yield opened
