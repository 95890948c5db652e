"""Tells which sessions are read in which transaction."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from bot.store.database import Database

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    import pytest
    from sqlalchemy.ext.asyncio import AsyncConnection


class ReadTransactions:
    """What was read since this was made. `sessions`: of each transaction, those that were noted during it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.sessions: list[list[str]] = []
        reading = Database.reading

        @asynccontextmanager
        async def noted(database: Database) -> AsyncIterator[AsyncConnection]:
            self.sessions.append([])
            async with reading(database) as connection:
                yield connection

        monkeypatch.setattr(Database, "reading", noted)

    def note(self, session_id: str) -> None:
        """Note that a session is read now."""
        self.sessions[-1].append(session_id)

    @property
    def with_sessions(self) -> list[list[str]]:
        """Return the transactions in which a session was read."""
        return [each for each in self.sessions if each]
