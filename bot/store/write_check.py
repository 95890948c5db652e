"""Finds out whether the database can be written, without writing anything into it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import delete

from bot.store.tables import sessions

if TYPE_CHECKING:
    from bot.store.database import Database


async def check_writable(database: Database) -> None:
    """Begin a write transaction and delete a session that does not exist. Raises `StoreError`.

    A statement is needed: SQLite begins a write transaction on a read-only file too.
    """
    async with database.writing() as connection:
        await connection.execute(delete(sessions).where(sessions.c.id == ""))
