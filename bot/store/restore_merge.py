"""Carries what people decided since a backup from the present database into the restored one.

What was forgotten since stays forgotten: a session from which something was forgotten is taken over as it is at
present, or left out if it is deleted at present. Facts about people that were deleted since are left out. Who has opted
out stays out, and what the servers' managers have chosen stays chosen.

Both databases are SQLite files of this version that nobody else uses.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bot.store.dialects.sqlite import TEXT_FACTORY
from bot.store.forgotten_hashes import NOTHING_MADE, session_digest
from bot.store.tables import metadata, passages

if TYPE_CHECKING:
    from pathlib import Path

    from sqlalchemy import Table

# The tables of one session's rows, parents first. Vectors of passages are made again by their model.
_OF_SESSION = tuple(table for table in metadata.sorted_tables if "session_id" in table.columns)
# Of the sessions that both databases have.
_SHARED = "session_id IN (SELECT id FROM present.sessions)"
_STATEMENTS = (
    # A fact that the present database had drawn, or would have by now, and no longer has was deleted.
    f"""
    DELETE FROM main.person_facts WHERE {_SHARED} AND id NOT IN (SELECT id FROM present.person_facts)
    AND turn_seq < (SELECT through_seq FROM present.person_draws d WHERE d.session_id = person_facts.session_id)
    """,  # noqa: S608 - a constant
    """
    INSERT INTO main.person_forgets (session_id, person_id, through_seq)
    SELECT session_id, person_id, through_seq FROM present.person_forgets
    WHERE session_id IN (SELECT id FROM main.sessions)
    ON CONFLICT (session_id, person_id) DO UPDATE SET through_seq = max(through_seq, excluded.through_seq)
    """,
    # They are all deleted whenever anything is forgotten.
    f"""
    DELETE FROM main.sent_texts WHERE {_SHARED} AND NOT EXISTS (
        SELECT 1 FROM present.sent_texts t WHERE t.session_id = sent_texts.session_id AND t.digest = sent_texts.digest
    )
    """,  # noqa: S608 - a constant
    # So are the prompts that name or quote somebody.
    f"""
    DELETE FROM main.sent_prompts WHERE {_SHARED} AND NOT EXISTS (
        SELECT 1 FROM present.sent_prompts p WHERE p.session_id = sent_prompts.session_id
        AND p.digest = sent_prompts.digest
    )
    """,  # noqa: S608 - a constant
    """
    INSERT INTO main.forgotten_sessions (digest, from_seq, at)
    SELECT digest, from_seq, at FROM present.forgotten_sessions WHERE true
    ON CONFLICT (digest) DO UPDATE SET from_seq = min(from_seq, excluded.from_seq), at = max(at, excluded.at)
    """,
    "INSERT OR IGNORE INTO main.forgotten_runs (digest) SELECT digest FROM present.forgotten_runs",
    # Who was heard again meanwhile has said something in between, which a session that is taken over may have.
    """
    INSERT INTO main.hearing_opt_outs (guild_id, person_id, since)
    SELECT guild_id, person_id, since FROM present.hearing_opt_outs WHERE true
    ON CONFLICT (guild_id, person_id) DO UPDATE SET since = max(since, excluded.since)
    """,
    # The number of a room never falls, so that no process of before the restore has the newest one again.
    """
    INSERT INTO main.room_claims (guild_id, number) SELECT guild_id, number FROM present.room_claims WHERE true
    ON CONFLICT (guild_id) DO UPDATE SET number = max(number, excluded.number)
    """,
)
# The present rows replace those of the backup.
_CHOSEN = ("guild_settings", "server_settings")


@dataclass(frozen=True, slots=True)
class MergedSessions:
    """How many sessions of the backup were taken from the present database, and how many were left out."""

    taken: int = 0
    left_out: int = 0


def merge_newer_decisions(restored: Path, present: Path) -> MergedSessions:
    """Change the database at `restored` as the module says, in one transaction. Raises `sqlite3.Error`."""
    with closing(sqlite3.connect(restored, isolation_level=None)) as connection:
        connection.text_factory = TEXT_FACTORY
        connection.execute("PRAGMA foreign_keys = ON")
        # Overwrites deleted data.
        connection.execute("PRAGMA secure_delete = ON")
        connection.execute("ATTACH ? AS present", (str(present),))
        connection.execute("BEGIN IMMEDIATE")
        done = _merge_sessions(connection)
        for statement in _STATEMENTS:
            connection.execute(statement)
        for name in _CHOSEN:
            _copy(connection, metadata.tables[name], "true", ())
        connection.execute("COMMIT")
        return done


def _merge_sessions(connection: sqlite3.Connection) -> MergedSessions:
    """Replace or delete each session from which something was forgotten since the backup."""
    forgotten = dict(
        connection.execute("SELECT digest, at FROM present.forgotten_sessions WHERE from_seq < ?", (NOTHING_MADE,))
    )
    known = dict(connection.execute("SELECT digest, at FROM main.forgotten_sessions"))
    present = {name for (name,) in connection.execute("SELECT id FROM present.sessions")}
    taken = left_out = 0
    for (name,) in connection.execute("SELECT id FROM main.sessions").fetchall():
        digest = session_digest(name)
        if digest not in forgotten or forgotten[digest] <= known.get(digest, float("-inf")):
            continue
        # Everything in it is deleted with it.
        connection.execute("DELETE FROM main.sessions WHERE id = ?", (name,))
        if name in present:
            _take_session(connection, name)
            taken += 1
        else:
            left_out += 1
    return MergedSessions(taken, left_out)


def _take_session(connection: sqlite3.Connection, name: str) -> None:
    # A voice channel has one open session. The one of the present goes on.
    connection.execute(
        """
        UPDATE main.sessions SET ended_at = coalesce(last_at, started_at) WHERE ended_at IS NULL
        AND (guild_id, channel_id) IN (SELECT guild_id, channel_id FROM present.sessions WHERE id = ?)
        """,
        (name,),
    )
    _copy(connection, metadata.tables["sessions"], "id = ?", (name,))
    # Those that are there are not replaced: other sessions were sent them too.
    connection.execute(
        """
        INSERT OR IGNORE INTO main.prompts (digest, text) SELECT digest, text FROM present.prompts
        WHERE digest IN (SELECT digest FROM present.sent_prompts WHERE session_id = ?)
        """,
        (name,),
    )
    for table in _OF_SESSION:
        _copy(connection, table, "session_id = ?", (name,))


def _copy(connection: sqlite3.Connection, table: Table, condition: str, values: tuple[str, ...]) -> None:
    columns = [f'"{column.name}"' for column in table.columns]
    if table is passages:
        # New ids, and to be embedded anew: the backup's passages have the old ids.
        columns = [each for each in columns if each not in ('"id"', '"embedded_by"')]
    listed = ", ".join(columns)
    connection.execute(
        f"INSERT OR REPLACE INTO main.{table.name} ({listed}) "  # noqa: S608 - names of the code
        f"SELECT {listed} FROM present.{table.name} WHERE {condition}",
        values,
    )
