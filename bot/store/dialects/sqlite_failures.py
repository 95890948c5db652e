"""Turns SQLite's errors into plain sentences that say what to do."""

from __future__ import annotations

import shutil
import sqlite3
from typing import TYPE_CHECKING

from sqlalchemy.exc import DBAPIError

from bot.texts.text import Text
from compaction.errors import StoreError

if TYPE_CHECKING:
    from pathlib import Path

# Keyed by the primary part of SQLite's result code (https://www.sqlite.org/rescode.html).
_SENTENCES: dict[str, Text] = {
    "SQLITE_FULL": Text(
        "The disk is full, so nothing more can be stored in {path}. Free some space, or set "
        "storage.data_dir to another disk."
    ),
    "SQLITE_READONLY": Text(
        "{path} cannot be written. Give the user that runs the bot write access to the file and its "
        "directory, or set storage.data_dir to another directory."
    ),
    "SQLITE_BUSY": Text(
        "{path} is locked: another process is writing to it. Stop the other bot or tool that uses it, or "
        "wait until it has finished."
    ),
    "SQLITE_LOCKED": Text(
        "{path} is locked: another process is writing to it. Stop the other bot or tool that uses it, or "
        "wait until it has finished."
    ),
    "SQLITE_CORRUPT": Text(
        "{path} is damaged. Stop the bot and restore a backup, or try `sqlite3 FILE .recover`; or move "
        "the file away to begin with an empty one."
    ),
    "SQLITE_NOTADB": Text(
        "{path} is not a database. Move the file away, or set storage.data_dir to another directory."
    ),
    "SQLITE_CANTOPEN": Text(
        "{path} cannot be opened. Check that its directory exists and that the user that runs the bot may write there."
    ),
    "SQLITE_PERM": Text(
        "{path} may not be opened. Give the user that runs the bot access to the file and its directory."
    ),
    "SQLITE_IOERR": Text("The disk failed while {path} was read or written. Look at the machine's disk and its log."),
    "SQLITE_NOMEM": Text("There is no memory left for {path}. Free some memory and start the bot again."),
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
            Text(
                "{path} did not answer in time. The machine's disk may be overloaded or stalled: look at it.",
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
            Text(
                "{path} cannot be used: {reason}. Check storage.data_dir and its rights.",
                path=str(path),
                reason=error.strerror or type(error).__name__,
            )
        )
    # Never str(error): SQLAlchemy includes the statement and its parameters, which may hold speech. Nor what the driver
    # says itself, without a code of SQLite: it quotes a text that is no UTF-8.
    is_of_sqlite = isinstance(cause, sqlite3.Error) and isinstance(name, str)
    what = f"{type(cause).__name__}: {cause}" if is_of_sqlite else type(cause).__name__
    return StoreError(Text("{path} refused a request ({what}).", path=str(path), what=what))


def _disk_is_full(path: Path) -> bool:
    try:
        return shutil.disk_usage(path.parent).free < _FULL_BYTES
    except OSError:
        return False
