"""Provides a room of the database whose words can be searched."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest_asyncio

from bot.store.database import open_database
from tests.bot.conftest import Place
from tests.bot.store.search.searched_room import SearchedRoom


@pytest_asyncio.fixture
async def room(place: Place) -> AsyncIterator[SearchedRoom]:
    """An empty database."""
    async with open_database(place, synchronous="normal") as database:
        yield SearchedRoom(database)
