"""SQLite's queries: JSON functions for lists, and FTS5 for the index of words.

Its errors become plain sentences that say what to do.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
from typing import TYPE_CHECKING

from sqlalchemy.exc import DBAPIError

from bot.store.dialects.port import AWAY, BROKEN, FULL, UNWRITABLE, DialectSql
from bot.store.dialects.search_sql import Conditions, Matched, SearchSql
from bot.store.search.tags import NOTHING_TAG, Clauses, left_out_tags, tag_clauses
from bot.texts.text import OperatorText
from compaction.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

    from compaction.memory.passage import Scope

_READABLE = "SELECT value ->> 0 AS session_id, value ->> 1 AS since, value ->> 2 AS until FROM json_each(:readable)"
_TAGS = "instr(' ' || p.tags || ' '"


def _matched(name: str) -> Matched:
    source = "passage_index f CROSS JOIN passages p ON p.id = f.rowid"
    return Matched(source, "f.rowid", f"passage_index MATCH :{name}")


def _match(term: str | None, scope: Scope) -> str:
    return match_expression(term, tag_clauses(scope), left_out_tags(scope))


def _tagged(scope: Scope) -> Conditions:
    conditions: list[str] = []
    values: dict[str, object] = {}
    for alternatives in tag_clauses(scope):
        either = [" AND ".join(f"{_TAGS}, :{tag}) > 0" for tag in sorted(needed)) for needed in alternatives if needed]
        conditions.append(f"({' OR '.join(either) or 'false'})")
        # With a space on both sides: a name's tag may end like the tag of a channel.
        values |= {tag: f" {tag} " for needed in alternatives for tag in needed}
    if left_out := left_out_tags(scope):
        values["left_out"] = json.dumps([f" {tag} " for tag in sorted(left_out)])
        conditions.append(f"NOT EXISTS (SELECT 1 FROM json_each(:left_out) WHERE {_TAGS}, value) > 0)")  # noqa: S608
    return Conditions(tuple(conditions), values)


def match_expression(term: str | None, clauses: Clauses, left_out: Collection[str] = ()) -> str:
    """Return the FTS5 query for passages with a term (None: any) within the clauses, without any of the tags that are
    `left_out`, which take a clause. An empty result means no condition.

    Terms and tags contain only letters and digits, so FTS5 cannot mistake them for syntax.
    """
    wanted = [] if term is None else [f"({{own}} : {_quoted(term)})"]
    for alternatives in clauses:
        either = [f"({' AND '.join(map(_quoted, sorted(needed)))})" for needed in alternatives if needed]
        # A clause without alternatives matches nothing.
        wanted.append(f"({{tags}} : ({' OR '.join(either) or _quoted(NOTHING_TAG)}))")
    query = " AND ".join(wanted)
    return f"({query}) NOT ({{tags}} : ({' OR '.join(map(_quoted, sorted(left_out)))}))" if left_out else query


def _quoted(term: str) -> str:
    return f'"{term}"'


SQLITE_SQL = DialectSql(
    first_speakers="""
        SELECT seq, parts -> '$[0][0]' FROM turns WHERE session_id = :session AND NOT tombstone ORDER BY seq
    """,
    speakers="""
        SELECT part.value -> 0 AS speaker_id, part.value -> 1 AS name FROM turns, json_each(turns.parts) AS part
        WHERE turns.session_id = :session GROUP BY speaker_id, name ORDER BY min(turns.seq)
    """,
    speakers_elsewhere="""
        SELECT DISTINCT part.value -> 0 FROM sessions JOIN turns ON turns.session_id = sessions.id,
        json_each(turns.parts) AS part
        WHERE sessions.guild_id = :guild AND sessions.id <> :session AND turns.started_at < :until
    """,
    search=SearchSql(_matched, _match, _tagged, "CROSS JOIN", _READABLE),
)


# Keyed by the primary part of SQLite's result code (https://www.sqlite.org/rescode.html).
_SENTENCES: dict[str, OperatorText] = {
    "SQLITE_FULL": OperatorText(
        "The disk is full, so nothing more can be stored in {path}. Free some space, or set "
        "storage.data_dir to another disk.",
        FULL,
    ),
    "SQLITE_READONLY": OperatorText(
        "{path} cannot be written. Give the user that runs the bot write access to the file and its "
        "directory, or set storage.data_dir to another directory.",
        UNWRITABLE,
    ),
    "SQLITE_BUSY": OperatorText(
        "{path} is locked: another process is writing to it. Stop the other bot or tool that uses it, or "
        "wait until it has finished.",
        AWAY,
    ),
    "SQLITE_LOCKED": OperatorText(
        "{path} is locked: another process is writing to it. Stop the other bot or tool that uses it, or "
        "wait until it has finished.",
        AWAY,
    ),
    "SQLITE_CORRUPT": OperatorText(
        "{path} is damaged. Stop the bot and restore a backup, or try `sqlite3 FILE .recover`; or move "
        "the file away to begin with an empty one.",
        BROKEN,
    ),
    "SQLITE_NOTADB": OperatorText(
        "{path} is not a database. Move the file away, or set storage.data_dir to another directory.", BROKEN
    ),
    "SQLITE_CANTOPEN": OperatorText(
        "{path} cannot be opened. Check that its directory exists and that the user that runs the bot may write there.",
        BROKEN,
    ),
    "SQLITE_PERM": OperatorText(
        "{path} may not be opened. Give the user that runs the bot access to the file and its directory.", BROKEN
    ),
    "SQLITE_IOERR": OperatorText(
        "The disk failed while {path} was read or written. Look at the machine's disk and its log.", BROKEN
    ),
    "SQLITE_NOMEM": OperatorText(
        "There is no memory left for {path}. Free some memory and start the bot again.", BROKEN
    ),
}


# Codes that SQLite may use if there is no room for its journal or shared memory.
_MAYBE_FULL = ("SQLITE_IOERR", "SQLITE_CANTOPEN")
# Less than the journal of one transaction and its shared memory need.
_FULL_BYTES = 500_000


def sqlite_failure(error: BaseException, path: Path) -> StoreError:
    """Return a `StoreError` that explains `error` for the database at `path` and gives the remedy."""
    if isinstance(error, StoreError):
        return error
    if isinstance(error, TimeoutError):
        return StoreError(
            OperatorText(
                "{path} did not answer in time. The machine's disk may be overloaded or stalled: look at it.",
                AWAY,
                path=str(path),
            )
        )
    cause: BaseException | None = error
    if isinstance(error, DBAPIError):
        cause = error.orig
    name = getattr(cause, "sqlite_errorname", None)
    if isinstance(name, str):
        if name.startswith(_MAYBE_FULL) and _disk_is_full(path):
            name = "SQLITE_FULL"
        for primary, sentence in _SENTENCES.items():
            if name == primary or name.startswith(primary + "_"):
                return StoreError(sentence.fill(path=str(path)))
    if isinstance(error, OSError):
        return StoreError(
            OperatorText(
                "{path} cannot be used: {reason}. Check storage.data_dir and its rights.",
                BROKEN,
                path=str(path),
                reason=error.strerror or type(error).__name__,
            )
        )
    # Never str(error): SQLAlchemy includes the statement and its parameters, which may hold speech. Nor what the driver
    # says itself, without a code of SQLite: it quotes a text that is no UTF-8.
    is_of_sqlite = isinstance(cause, sqlite3.Error) and isinstance(name, str)
    what = f"{type(cause).__name__}: {cause}" if is_of_sqlite else type(cause).__name__
    return StoreError(OperatorText("{path} refused a request ({what}).", BROKEN, path=str(path), what=what))


def _disk_is_full(path: Path) -> bool:
    try:
        return shutil.disk_usage(path.parent).free < _FULL_BYTES
    except OSError:
        return False
