"""Provides a room of the database whose words can be searched."""

from __future__ import annotations

import pytest

from bot.store.database import Database
from tests.bot.store.search.searched_room import SearchedRoom


@pytest.fixture
def room(database: Database) -> SearchedRoom:
    """An empty database."""
    return SearchedRoom(database)
