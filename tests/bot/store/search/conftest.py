"""Provides a room of the database whose words can be searched."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.bot.store.search.searched_room import SearchedRoom

if TYPE_CHECKING:
    from bot.store.database import Database


@pytest.fixture
def room(database: Database) -> SearchedRoom:
    """An empty database."""
    return SearchedRoom(database)
