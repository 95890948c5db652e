"""Inserts rows that may be there already, and runs a statement for many rows in parts, so that audio does not wait."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy.dialects import postgresql, sqlite

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy import ColumnElement, Executable, Table
    from sqlalchemy.ext.asyncio import AsyncConnection

# Rows in one call: preparing a thousand at once would keep the event loop from audio for a tenth of a second.
_ROWS_AT_ONCE = 50


def insert_into(connection: AsyncConnection, table: Table) -> sqlite.Insert | postgresql.Insert:
    """Return an INSERT into `table` with `on_conflict_do_nothing` and `on_conflict_do_update`."""
    return sqlite.insert(table) if connection.dialect.name == "sqlite" else postgresql.insert(table)


async def execute_for_each(
    connection: AsyncConnection, statement: Executable, rows: Sequence[dict[str, object]]
) -> None:
    """Execute a statement once for each row of parameters."""
    for start in range(0, len(rows), _ROWS_AT_ONCE):
        await connection.execute(statement, rows[start : start + _ROWS_AT_ONCE])


async def add_once(connection: AsyncConnection, table: Table, values: dict[str, object]) -> bool:
    """Insert one row unless one of its keys is taken; return whether it was inserted."""
    wanted = insert_into(connection, table).values(values).on_conflict_do_nothing()
    # By itself SQLAlchemy counts only the rows of updates and deletions.
    result = await connection.execute(wanted.execution_options(preserve_rowcount=True))
    return result.rowcount == 1


async def add_all_once(connection: AsyncConnection, table: Table, values: list[dict[str, object]]) -> None:
    """Insert the rows whose keys are free."""
    await execute_for_each(connection, insert_into(connection, table).on_conflict_do_nothing(), values)


async def put_row(
    connection: AsyncConnection,
    table: Table,
    key: dict[str, object],
    values: dict[str, object],
    *,
    where: ColumnElement[bool] | None = None,
) -> bool:
    """Insert a row, or give the row with this primary key these values. Return whether either was done. `where`: only
    if the row that is there is so.
    """
    row = insert_into(connection, table).values(key | values)
    put = row.on_conflict_do_update(index_elements=list(key), set_=values, where=where)
    return (await connection.execute(put.execution_options(preserve_rowcount=True))).rowcount == 1
