"""Finds the users of a PostgreSQL server who can make a function where the bot's statements look for theirs.

PostgreSQL takes the function whose types fit best, in whatever schema of the search path it is. So whoever may create
one there can have the bot run it with the bot's rights, and read and change everything. Before version 15 every user of
a server may, in the schema `public` of every database; and a database keeps that when it is upgraded or restored.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import psycopg
import structlog

from bot.store.dialects.port import STRANGERS_REMEDY

if TYPE_CHECKING:
    from collections.abc import Mapping

log = structlog.get_logger()

# Every function is named with its schema here: these are the statements of which another one must not be made.
_STRANGERS: Final = """
    SELECT pg_catalog.count(DISTINCT stranger.oid)
    FROM pg_catalog.unnest(pg_catalog.current_schemas(false)) AS path(name)
    JOIN pg_catalog.pg_namespace AS space ON space.nspname = path.name
    CROSS JOIN pg_catalog.pg_roles AS stranger
    CROSS JOIN pg_catalog.pg_roles AS bot
    JOIN pg_catalog.pg_database AS here ON here.datname = pg_catalog.current_database()
    WHERE bot.rolname = current_user AND stranger.rolcanlogin AND NOT stranger.rolsuper
    AND stranger.oid NOT IN (bot.oid, space.nspowner, here.datdba)
    AND NOT pg_catalog.pg_has_role(stranger.oid, bot.oid, 'MEMBER')
    AND pg_catalog.has_database_privilege(stranger.oid, here.oid, 'CONNECT')
    AND pg_catalog.has_schema_privilege(stranger.oid, space.oid, 'CREATE')
"""


def count_strangers(connection: psycopg.Connection[Any]) -> int:
    """Return how many users can make such a function who are neither administrators nor owners. Raises
    `psycopg.Error`.
    """
    row = connection.execute(_STRANGERS).fetchone()
    assert row is not None, "it counts"
    return int(row[0])


async def warn_of_strangers(options: Mapping[str, Any]) -> None:
    """Say in the log if there are such users. Raises `psycopg.Error`."""
    async with await psycopg.AsyncConnection.connect(**{**options, "autocommit": True}) as connection:
        row = await (await connection.execute(_STRANGERS)).fetchone()
    if row is not None and row[0]:
        log.warning("database_open_to_others", count=row[0], remedy=STRANGERS_REMEDY)
