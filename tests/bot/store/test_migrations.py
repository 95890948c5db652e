"""The migrations make the tables that `bot.store.tables` defines, so the code's queries fit every database."""

from __future__ import annotations

from collections.abc import Iterator

from sqlalchemy import Connection, MetaData, Table
from sqlalchemy.schema import CreateIndex, CreateTable

from bot.store.database import Database
from bot.store.tables import metadata

# Alembic's table and, on SQLite, those of the full-text index.
OTHER_TABLES = ("alembic_version", "passage_index")
# PostgreSQL's full-text index.
SEARCH_PARTS = ("words ", "CREATE INDEX passages_by_words ")


def described(connection: Connection) -> dict[str, set[str]]:
    """Return the columns, keys, constraints and indexes of each table, whatever their order."""
    found = MetaData()
    found.reflect(connection, only=lambda name, _: not name.startswith(OTHER_TABLES))
    return {name: set(lines_of(table, connection)) for name, table in found.tables.items()}


def lines_of(table: Table, connection: Connection) -> Iterator[str]:
    """Yield the lines of the statements that would make a table."""
    statements: list[CreateTable | CreateIndex] = [CreateTable(table), *map(CreateIndex, table.indexes)]
    for statement in statements:
        for line in str(statement.compile(connection)).splitlines():
            if not line.strip().startswith(SEARCH_PARTS):
                yield line.strip().removesuffix(",")


def made_anew(connection: Connection) -> dict[str, set[str]]:
    """Return the same of the tables that `bot.store.tables` would make."""
    metadata.drop_all(connection)
    metadata.create_all(connection)
    return described(connection)


async def test_the_migrations_make_the_tables_of_the_code(database: Database) -> None:
    """Both have the same tables, and each table has the same columns, keys and indexes."""
    async with database.writing() as connection:
        migrated = await connection.run_sync(described)
        assert migrated.keys() == metadata.tables.keys()
        # The next test gets this database with its triggers.
        trial = await connection.begin_nested()
        assert await connection.run_sync(made_anew) == migrated
        await trial.rollback()
