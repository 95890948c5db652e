"""pgvector: where a PostgreSQL server has it, the database searches the embeddings itself.

`passage_vectors` is the same on every server. A second table, `searched_vectors`, has each embedding as a `halfvec`,
with the columns that most searches filter by. A trigger writes it in the transaction that stores an embedding, in
whichever process, and a deleted embedding takes its row along. So a database that moves to a server without pgvector
loses nothing, and one that gains pgvector needs no embedder.

No migration makes this table: a migration runs once, and the extension may come or go at any time. `settle` looks at
each start.

A search compares every embedding in its scope. An index of pgvector would be faster, but finds less than all with a
narrow filter, and would be built anew whenever somebody is forgotten (docs/decisions/0019-postgresql.md).
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import structlog
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from bot.store.dialects.port import PlainQuery
from bot.store.dialects.postgresql_sql import NUMBERS, POSTGRESQL_SQL, match_expression
from bot.store.number_range import LARGEST_NUMBER
from bot.store.search.tags import tag_clauses

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractAsyncContextManager

    import psycopg
    from sqlalchemy.ext.asyncio import AsyncConnection

    from compaction.memory.passage import Scope

    Writing = Callable[[], AbstractAsyncContextManager[AsyncConnection]]

log = structlog.get_logger()

TABLE = "searched_vectors"
# Embeddings that are converted in one transaction, in about 100 ms: new turns wait for it.
_FILL_ROWS = 1_000
# As many numbers as a `halfvec` can have. The widest models make a quarter of it; wider ones would not be found.
_MAX_WIDTH = 16_000
_FITS = f"octet_length(v.vector) BETWEEN 1 AND {_MAX_WIDTH}"
_SELECTED = """
    SELECT v.id, v.passage_id, v.model, octet_length(v.vector), p.session_id, p.start_seq, p.at,
    roomtone_numbers(v.scale, v.vector)::halfvec
"""
_MAKE = (
    # Rows up to a page stay in one piece: a search reads all of them.
    f"""
    CREATE TABLE {TABLE} (
        vector_id BIGINT NOT NULL PRIMARY KEY REFERENCES passage_vectors (id) ON DELETE CASCADE,
        passage_id BIGINT NOT NULL,
        model VARCHAR COLLATE "C" NOT NULL,
        width BIGINT NOT NULL,
        session_id VARCHAR COLLATE "C" NOT NULL,
        start_seq BIGINT,
        at DOUBLE PRECISION NOT NULL,
        embedding HALFVEC NOT NULL
    ) WITH (toast_tuple_target = 8160)
    """,
    f"CREATE INDEX {TABLE}_by_session ON {TABLE} (session_id)",
    f"""
    CREATE FUNCTION vector_stored() RETURNS TRIGGER LANGUAGE plpgsql AS $$ BEGIN
        INSERT INTO {TABLE} {_SELECTED} FROM (SELECT new.*) AS v JOIN passages p ON p.id = v.passage_id WHERE {_FITS};
        RETURN NULL;
    END $$
    """,
    """
    CREATE TRIGGER vector_stored AFTER INSERT ON passage_vectors
    FOR EACH ROW EXECUTE FUNCTION vector_stored()
    """,
)
# Also what a restored dump has of it on a server without pgvector.
_REMOVE = (
    "DROP TRIGGER IF EXISTS vector_stored ON passage_vectors",
    "DROP FUNCTION IF EXISTS vector_stored()",
    f"DROP TABLE IF EXISTS {TABLE}",
)
# The newest first, so that what is missing always lies below what is there.
_FILL = f"""
    INSERT INTO {TABLE} {_SELECTED} FROM passage_vectors v JOIN passages p ON p.id = v.passage_id
    WHERE v.id < coalesce((SELECT min(vector_id) FROM {TABLE}), {LARGEST_NUMBER}) AND {_FITS}
    ORDER BY v.id DESC LIMIT {_FILL_ROWS}
"""  # noqa: S608 - constants
# What the server offers is asked only if it is not used already: it reads a file for each of its extensions. pgvector
# itself asks for a superuser; some packages mark it as trusted.
_STATE = f"""
    SELECT (SELECT extversion FROM pg_extension WHERE extname = 'vector') AS installed,
    CASE WHEN to_regtype('halfvec') IS NULL THEN (
        SELECT default_version FROM pg_available_extensions WHERE name = 'vector'
    ) END AS offered,
    to_regtype('halfvec') IS NULL AND EXISTS (
        SELECT FROM pg_available_extension_versions CROSS JOIN pg_roles WHERE name = 'vector' AND rolname = current_user
        AND (rolsuper OR ((trusted OR NOT superuser) AND has_database_privilege(current_database(), 'CREATE')))
    ) AS creatable,
    to_regtype('halfvec') IS NOT NULL AS usable,
    EXISTS (
        SELECT FROM pg_attribute WHERE attrelid = to_regclass('{TABLE}') AND attname = 'embedding' AND NOT attisdropped
    ) AS made,
    to_regclass('{TABLE}') IS NOT NULL OR EXISTS (
        SELECT FROM pg_trigger WHERE tgrelid = to_regclass('passage_vectors') AND tgname = 'vector_stored'
    ) AS begun
"""  # noqa: S608 - a constant

# Whether `_FILL` would find nothing.
_FILLED = f"""
    SELECT NOT EXISTS (
        SELECT FROM passage_vectors v
        WHERE v.id < coalesce((SELECT min(vector_id) FROM {TABLE}), {LARGEST_NUMBER}) AND {_FITS}
    )
"""  # noqa: S608 - a constant


async def settle(writing: Writing) -> bool:
    """Use pgvector if the server has it, or remove what was made for it; return whether searches can use it.

    Creates the extension if this user may. Converts stored embeddings in short transactions; after an interruption the
    next start goes on. `writing`: begins a write transaction. The tables are up to date.
    """
    async with writing() as connection:
        state = (await connection.execute(text(_STATE))).one()
        usable = state.usable or (state.installed is None and state.creatable and await _create_extension(connection))
        if state.begun and not (usable and state.made):
            await _run(connection, _REMOVE)
        if usable and not state.made:
            await _run(connection, _MAKE)
    if usable:
        await _fill(writing)
    return bool(usable)


async def is_settled(connection: AsyncConnection) -> bool:
    """Return whether searches can use what `settle` has made. While embeddings are still converted, they cannot."""
    state = (await connection.execute(text(_STATE))).one()
    return bool(state.usable and state.made and await connection.scalar(text(_FILLED)))


async def _create_extension(connection: AsyncConnection) -> bool:
    """Create the extension, and return whether it worked and has `halfvec`."""
    try:
        async with connection.begin_nested():
            await connection.exec_driver_sql("CREATE EXTENSION vector")
    except DBAPIError:
        # `roomtone doctor` says what an administrator has to do.
        return False
    return bool((await connection.execute(text(_STATE))).one().usable)


async def _run(connection: AsyncConnection, statements: Sequence[str]) -> None:
    for statement in statements:
        await connection.exec_driver_sql(statement)


async def _fill(writing: Writing) -> None:
    """Convert the embeddings that were stored before there was a trigger."""
    count = 0
    while True:
        async with writing() as connection:
            added = (await connection.exec_driver_sql(_FILL)).rowcount
        if not added:
            break
        if not count and added == _FILL_ROWS:
            log.info("pgvector_filling")
        count += added
    if count:
        log.info("pgvector_filled", count=count)


def describe_search(connection: psycopg.Connection[Any]) -> str:
    """Return who searches the embeddings of this database, and how pgvector could, for `roomtone doctor`."""
    row = connection.execute(_STATE).fetchone()
    assert row is not None, "it selects one row"
    installed, offered, creatable, usable, made, _ = row
    if usable and made:
        return f"pgvector {installed} searches the embeddings"
    if usable or (installed is None and creatable):
        version = installed or offered
        return f"the bot searches the embeddings in its memory; from its next start on, pgvector {version} does"
    if installed is not None:
        return (
            f"the bot searches the embeddings in its memory; pgvector {installed} is older than 0.7, or in a schema "
            "that is not in the search_path: an administrator can run `ALTER EXTENSION vector UPDATE` or `SET SCHEMA`"
        )
    if offered is not None:
        return (
            f"the bot searches the embeddings in its memory; for pgvector {offered}, an administrator runs `CREATE "
            "EXTENSION vector` in this database, and the bot is restarted"
        )
    return (
        "the bot searches the embeddings in its memory, because the server has no pgvector (on Debian the package "
        "postgresql-NN-pgvector, for Docker the image pgvector/pgvector)"
    )


def _search_vectors(vector: Sequence[float], scope: Scope, model: str, limit: int) -> PlainQuery:
    conditions = ["v.model = :model", "v.width = :width"]
    values: dict[str, object] = {"model": model, "width": len(vector), "limit": limit}
    values["vector"] = f"[{','.join(f'{component:.7g}' for component in vector[:_MAX_WIDTH])}]"
    if scope.session_id is not None:
        conditions.append("v.session_id = :session")
        values["session"] = scope.session_id
    of_place: list[str] = []
    if scope.guild_id is not None:
        of_place.append("guild_id = :guild")
        values["guild"] = scope.guild_id
    if scope.channels is not None:
        of_place.append(f"channel_id IN {NUMBERS.format(name=':channels')}")
        values["channels"] = json.dumps(sorted(scope.channels))
    if of_place:
        # No outside text is in the SQL, here and below.
        conditions.append(f"v.session_id IN (SELECT id FROM sessions WHERE {' AND '.join(of_place)})")  # noqa: S608
    if scope.since is not None:
        conditions.append("v.at >= :since")
        values["since"] = scope.since
    if scope.until is not None:
        conditions.append("v.at < :until")
        values["until"] = scope.until
    if scope.in_view is not None:
        conditions.append("NOT (v.session_id = :viewed AND v.start_seq IS NOT NULL AND v.start_seq >= :viewed_from)")
        values["viewed"], values["viewed_from"] = scope.in_view
    # Kinds and speakers are searched for less often, and are tags.
    if match := match_expression("", tag_clauses(replace(scope, guild_id=None, channels=None, session_id=None))):
        conditions.append("v.passage_id IN (SELECT id FROM passages WHERE words @@ :match::tsquery)")
        values["match"] = match
    # `<#>` is the negative inner product: the cosine, because vectors have unit length.
    sql = f"""
        SELECT v.passage_id, -(v.embedding <#> :vector::halfvec) FROM {TABLE} v WHERE {" AND ".join(conditions)}
        ORDER BY v.embedding <#> :vector::halfvec, v.passage_id DESC LIMIT :limit
    """  # noqa: S608
    return PlainQuery(sql, values)


PGVECTOR_SQL = replace(POSTGRESQL_SQL, search_vectors=_search_vectors)
