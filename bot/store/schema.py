"""The shape of the database, and the steps that bring an older one up to it.

The tables here are what the code asks; `MIGRATIONS` is what was shipped, frozen word by word. A test holds the
two together: a database made by the migrations has these tables. The SQL keeps to what PostgreSQL has too.

Times are UTC epoch seconds. The parts of a turn are JSON with escapes, so that whatever a recogniser or Discord
sends comes back unchanged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import (
    DDL,
    BigInteger,
    Boolean,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    String,
    Table,
    Text,
    event,
    text,
)
from sqlalchemy.dialects.sqlite import insert

# Named here too, so that who makes all tables finds all of them described.
from bot.store import guilds as guilds
from bot.store import kept as kept
from bot.store.base import Prose as Prose
from bot.store.base import metadata as metadata
from bot.store.forgets_step import FORGETS_STEP
from bot.store.guilds import GUILDS_STEP, PERSONA_STEP
from bot.store.kept_step import KEPT_STEP
from bot.store.optouts import PARTICIPATION_STEP
from bot.store.search_step import SEARCH_OBJECTS, SEARCH_STEP
from bot.store.sent_step import SENT_STEP
from compaction.errors import StoreError

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection

# A session is made by the first word stored in it, so guild and channel may still be unknown (a replay has none).
sessions = Table(
    "sessions",
    metadata,
    Column("id", String, primary_key=True),
    Column("guild_id", BigInteger),
    Column("channel_id", BigInteger),
    Column("started_at", Float, nullable=False),
    Column("ended_at", Float),
    Column("cursor", Integer, nullable=False, server_default="0"),
    Column("revision", Integer, nullable=False, server_default="0"),
    Column("summary", Prose),
    Column("last_at", Float),
    # One voice channel holds one conversation: two processes cannot both begin one.
    Index(
        "one_open_session_a_channel",
        "guild_id",
        "channel_id",
        unique=True,
        sqlite_where=text("ended_at IS NULL AND channel_id IS NOT NULL"),
        postgresql_where=text("ended_at IS NULL AND channel_id IS NOT NULL"),
    ),
)

turns = Table(
    "turns",
    metadata,
    Column("session_id", String, ForeignKey("sessions.id", ondelete="CASCADE"), primary_key=True),
    Column("seq", Integer, primary_key=True),
    Column("kind", String, nullable=False),
    Column("started_at", Float, nullable=False),
    Column("ended_at", Float, nullable=False),
    Column("parts", Text, nullable=False),
    Column("tombstone", Boolean, nullable=False),
)

# `status` is live, pending or folded; `position` is the order in which notes were taken.
notes = Table(
    "notes",
    metadata,
    Column("session_id", String, ForeignKey("sessions.id", ondelete="CASCADE"), primary_key=True),
    Column("id", String, primary_key=True),
    Column("position", Integer, nullable=False),
    Column("status", String, nullable=False),
    Column("at", Float, nullable=False),
    Column("who", Prose, nullable=False),
    Column("what", Prose, nullable=False),
    Column("why", String, nullable=False),
    Column("source", String, nullable=False),
    Column("frame_hash", String, nullable=False),
    Index("notes_by_status", "session_id", "status"),
)

# The unique range is the idempotency key of a landing; the empty ranges of notes-only runs are not ranges.
# `position` is the order of landing.
segments = Table(
    "segments",
    metadata,
    Column("session_id", String, ForeignKey("sessions.id", ondelete="CASCADE"), primary_key=True),
    Column("id", String, primary_key=True),
    Column("position", Integer, nullable=False),
    Column("start_seq", Integer, nullable=False),
    Column("end_seq", Integer, nullable=False),
    Column("started_at", Float, nullable=False),
    Column("ended_at", Float, nullable=False),
    Column("gist", Prose, nullable=False),
    Column("facts", Text, nullable=False),
    Column("note_ids", Text, nullable=False),
    Column("summariser", String, nullable=False),
    Column("degraded", Boolean, nullable=False),
    Column("closing", Boolean, nullable=False),
    Column("created_at", Float, nullable=False),
    Column("original_tokens", Integer, nullable=False),
    Column("compressed_tokens", Integer, nullable=False),
    Column("pruned", Boolean, nullable=False, server_default="0"),
    Index(
        "one_segment_a_range",
        "session_id",
        "start_seq",
        "end_seq",
        unique=True,
        sqlite_where=text("start_seq < end_seq"),
        postgresql_where=text("start_seq < end_seq"),
    ),
)

# What memory search finds: a turn, note or segment each, as terms (`bot.store.search`). `key` is its seq or id. `own`,
# `preceding`, `following`: the terms of a turn and of its neighbours; `tags`: whose and where it is. `embedded_by`:
# the model that has looked at it, null while none has.
passages = Table(
    "passages",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("session_id", String, ForeignKey("sessions.id", ondelete="CASCADE"), nullable=False),
    Column("kind", String, nullable=False),
    Column("key", String, nullable=False),
    Column("start_seq", Integer),
    Column("at", Float, nullable=False),
    Column("own", Text, nullable=False),
    Column("preceding", Text, nullable=False),
    Column("following", Text, nullable=False),
    Column("tags", Text, nullable=False),
    Column("embedded_by", String),
    Index("one_passage_a_thing", "session_id", "kind", "key", unique=True),
    Index("passages_by_turn", "session_id", "start_seq"),
    Index("passages_by_time", "at"),
    Index("passages_to_embed", "id", sqlite_where=text("embedded_by IS NULL")),
    sqlite_autoincrement=True,
)

# An embedding as signed bytes: component = byte * scale. Its own `id` tells what came since.
passage_vectors = Table(
    "passage_vectors",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("passage_id", Integer, ForeignKey("passages.id", ondelete="CASCADE"), nullable=False),
    Column("model", String, nullable=False),
    Column("scale", Float, nullable=False),
    Column("vector", LargeBinary, nullable=False),
    Index("one_vector_a_passage", "passage_id", unique=True),
    sqlite_autoincrement=True,
)

# Which turn corrects which, as folding found it.
corrections = Table(
    "corrections",
    metadata,
    Column("session_id", String, ForeignKey("sessions.id", ondelete="CASCADE"), primary_key=True),
    Column("old_seq", Integer, primary_key=True),
    Column("new_seq", Integer, nullable=False),
)

# `generation` moves when passages go or change hands; `purged`: up to which what went has left the index's own pages.
search_marks = Table(
    "search_marks",
    metadata,
    Column("name", String, primary_key=True),
    Column("value", Integer, nullable=False),
)

for _statement in SEARCH_OBJECTS:
    event.listen(metadata, "after_create", DDL(_statement))  # type: ignore[no-untyped-call]

# Version n is reached by the statements of MIGRATIONS[n - 1]. Shipped steps are never edited: add one.
MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        """
        CREATE TABLE sessions (
            id VARCHAR NOT NULL PRIMARY KEY,
            guild_id BIGINT,
            channel_id BIGINT,
            started_at FLOAT NOT NULL,
            ended_at FLOAT,
            cursor INTEGER NOT NULL DEFAULT 0,
            revision INTEGER NOT NULL DEFAULT 0,
            summary TEXT,
            last_at FLOAT
        )
        """,
        """
        CREATE UNIQUE INDEX one_open_session_a_channel ON sessions (guild_id, channel_id)
        WHERE ended_at IS NULL AND channel_id IS NOT NULL
        """,
        """
        CREATE TABLE turns (
            session_id VARCHAR NOT NULL,
            seq INTEGER NOT NULL,
            kind VARCHAR NOT NULL,
            started_at FLOAT NOT NULL,
            ended_at FLOAT NOT NULL,
            parts TEXT NOT NULL,
            tombstone BOOLEAN NOT NULL,
            PRIMARY KEY (session_id, seq),
            FOREIGN KEY(session_id) REFERENCES sessions (id) ON DELETE CASCADE
        )
        """,
        """
        CREATE TABLE notes (
            session_id VARCHAR NOT NULL,
            id VARCHAR NOT NULL,
            position INTEGER NOT NULL,
            status VARCHAR NOT NULL,
            at FLOAT NOT NULL,
            who TEXT NOT NULL,
            what TEXT NOT NULL,
            why VARCHAR NOT NULL,
            source VARCHAR NOT NULL,
            frame_hash VARCHAR NOT NULL,
            PRIMARY KEY (session_id, id),
            FOREIGN KEY(session_id) REFERENCES sessions (id) ON DELETE CASCADE
        )
        """,
        "CREATE INDEX notes_by_status ON notes (session_id, status)",
        """
        CREATE TABLE segments (
            session_id VARCHAR NOT NULL,
            id VARCHAR NOT NULL,
            position INTEGER NOT NULL,
            start_seq INTEGER NOT NULL,
            end_seq INTEGER NOT NULL,
            started_at FLOAT NOT NULL,
            ended_at FLOAT NOT NULL,
            gist TEXT NOT NULL,
            facts TEXT NOT NULL,
            note_ids TEXT NOT NULL,
            summariser VARCHAR NOT NULL,
            degraded BOOLEAN NOT NULL,
            closing BOOLEAN NOT NULL,
            created_at FLOAT NOT NULL,
            original_tokens INTEGER NOT NULL,
            compressed_tokens INTEGER NOT NULL,
            PRIMARY KEY (session_id, id),
            FOREIGN KEY(session_id) REFERENCES sessions (id) ON DELETE CASCADE
        )
        """,
        """
        CREATE UNIQUE INDEX one_segment_a_range ON segments (session_id, start_seq, end_seq)
        WHERE start_seq < end_seq
        """,
    ),
    SEARCH_STEP,
    KEPT_STEP,
    GUILDS_STEP,
    PARTICIPATION_STEP,
    SENT_STEP,
    PERSONA_STEP,
    FORGETS_STEP,
)


async def add_once(connection: AsyncConnection, table: Table, values: dict[str, object]) -> bool:
    """Insert one row unless one of its keys is taken; return whether it was inserted. The one place of this dialect."""
    result = await connection.execute(insert(table).values(values).on_conflict_do_nothing())
    return result.rowcount == 1


async def add_all_once(connection: AsyncConnection, table: Table, values: list[dict[str, object]]) -> None:
    """Insert those of these rows whose keys are free."""
    await connection.execute(insert(table).on_conflict_do_nothing(), values)


async def migrate(connection: AsyncConnection, *, steps: tuple[tuple[str, ...], ...] = MIGRATIONS) -> int:
    """Bring the database up to the last step and return its version.

    `connection` is inside a write transaction, which makes all steps one: a crash leaves the old version whole.
    Raises `StoreError` for a database of a newer Roomtone, which is left as it is.
    """
    version = int((await connection.exec_driver_sql("PRAGMA user_version")).scalar_one())
    if version > len(steps):
        raise too_new(version, known=len(steps))
    for number, statements in enumerate(steps[version:], start=version + 1):
        for statement in statements:
            await connection.exec_driver_sql(statement)
        await connection.exec_driver_sql(f"PRAGMA user_version = {number}")
    return len(steps)


def too_new(version: int, *, known: int = len(MIGRATIONS)) -> StoreError:
    """Return what is said of a database that a later Roomtone wrote."""
    return StoreError(
        f"The database is of version {version}, and this Roomtone knows only {known}: a newer one wrote it. "
        "Install a later Roomtone, or set storage.data_dir to another directory."
    )
