"""Checking a database file changes nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.store.database import open_database
from bot.store.dialects.sqlite import verify_database_file
from bot.store.turns import SqlTurnStore
from compaction.errors import StoreError
from compaction.model import SessionId
from tests.bot.store.damaged import damage
from tests.compaction.turn_store_contract import fill
from tests.fakes.clock import FakeClock


async def test_a_whole_database_passes_while_it_is_used(tmp_path: Path) -> None:
    """A valid database passes while a bot uses it, and the bot can go on writing."""
    path = tmp_path / "roomtone.db"
    async with open_database(path) as database:
        await fill(SqlTurnStore(database, FakeClock()), 30, session_id=SessionId("evening"))
        verify_database_file(path)
        await fill(SqlTurnStore(database, FakeClock()), 5, session_id=SessionId("evening"), start=30)
    verify_database_file(path)


async def test_damage_inside_is_found(tmp_path: Path) -> None:
    """A page overwritten with rubbish is reported as damage."""
    path = tmp_path / "roomtone.db"
    async with open_database(path) as database:
        await fill(SqlTurnStore(database, FakeClock()), 30, session_id=SessionId("evening"))
    damage(path)
    with pytest.raises(StoreError, match="damaged"):
        verify_database_file(path)


def test_an_absent_database_cannot_be_opened(tmp_path: Path) -> None:
    """An absent database is an error, and the check does not create it."""
    with pytest.raises(StoreError, match="opened"):
        verify_database_file(tmp_path / "absent.db")
    assert list(tmp_path.iterdir()) == []
