"""Looks at a database without changing it, for `roomtone doctor`: a running bot may have it open."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

from bot.store.failures import FAILURES, store_failure
from bot.store.schema import MIGRATIONS, too_new
from compaction.errors import StoreError

if TYPE_CHECKING:
    from pathlib import Path

_WAIT_S = 2.0


def examine(path: Path) -> None:
    """Read the whole of the database at `path`. Raises `StoreError` for what would keep the bot from using it."""
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True, timeout=_WAIT_S)) as connection:
            version = int(connection.execute("PRAGMA user_version").fetchone()[0])
            if version > len(MIGRATIONS):
                raise too_new(version)
            (verdict,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    except FAILURES as exc:
        raise store_failure(exc, path) from exc
    if verdict != "ok":
        raise StoreError(f"{path} is damaged ({verdict}). Stop the bot and restore a backup, or move the file away.")
