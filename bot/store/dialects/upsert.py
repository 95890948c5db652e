"""Begins an INSERT that says what happens to rows whose keys are taken: each dialect has a class of its own for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy.dialects import postgresql, sqlite

if TYPE_CHECKING:
    from sqlalchemy import Table
    from sqlalchemy.ext.asyncio import AsyncConnection


def insert_into(connection: AsyncConnection, table: Table) -> sqlite.Insert | postgresql.Insert:
    """Return an INSERT into `table` with `on_conflict_do_nothing` and `on_conflict_do_update`."""
    return sqlite.insert(table) if connection.dialect.name == "sqlite" else postgresql.insert(table)
