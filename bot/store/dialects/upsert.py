"""Begins an upsert: an INSERT that says what happens if a row has the key already. Each dialect has its own class."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy.dialects import postgresql, sqlite

if TYPE_CHECKING:
    from sqlalchemy import Table
    from sqlalchemy.ext.asyncio import AsyncConnection


def insert_into(connection: AsyncConnection, table: Table) -> sqlite.Insert | postgresql.Insert:
    """Return an INSERT into `table` with `on_conflict_do_nothing` and `on_conflict_do_update`."""
    return sqlite.insert(table) if connection.dialect.name == "sqlite" else postgresql.insert(table)
