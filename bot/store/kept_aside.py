"""The databases that restores have kept beside the present one: what is deleted of that one, for a person or for its
age, is deleted of them too.

Nobody can tell whose words one has that cannot be read, so it goes as a whole: for a person at once, since it may have
theirs, and for its age when the whole file is too old. Until then its operator may save what is in it.
"""

from __future__ import annotations

import asyncio
import math
import sqlite3
from typing import TYPE_CHECKING

import structlog

from bot.store.backup import ASIDE, JOURNALS, BackupError, examine_backup, without_journal
from bot.store.database import Database, open_database
from bot.store.dialects.sqlite_sql import sqlite_failure

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path


log = structlog.get_logger()


async def delete_in_copies(
    database: Database, delete: Callable[[Database], Awaitable[bool]], *, unreadable_before: float = math.inf
) -> None:
    """Open each database that was kept beside this one, and delete in it. `delete`: returns whether the bytes of what
    it deleted have to go, which are wiped then. One that cannot be read is deleted if it was written before
    `unreadable_before` (Unix seconds). Raises `StoreError`.
    """
    for path in [] if database.file is None else await asyncio.to_thread(kept_aside, database.file):
        try:
            await asyncio.to_thread(examine_backup, path)
        except BackupError as error:
            if await asyncio.to_thread(_is_deleted, path, written_before=unreadable_before):
                log.warning("copy_deleted", path=path, problem=error)
            continue
        async with open_database(path, data_dir=database.data_dir) as copy:
            if await delete(copy):
                await copy.wipe()
        try:
            await asyncio.to_thread(without_journal, path)
        except sqlite3.Error as error:
            raise sqlite_failure(error, path) from error


def kept_aside(path: Path) -> list[Path]:
    """Return the databases that restores have kept beside the one at `path`."""
    found = sorted(path.parent.glob(f"{path.name}{ASIDE}*"))
    return [each for each in found if not each.name.endswith(JOURNALS)]


def _is_deleted(path: Path, *, written_before: float) -> bool:
    """Delete a database and its journals if it was last written before that (Unix seconds). Raises `StoreError`."""
    try:
        is_old = path.stat().st_mtime < written_before
        for ending in ("", *JOURNALS) if is_old else ():
            path.with_name(f"{path.name}{ending}").unlink(missing_ok=True)
    except OSError as error:
        raise sqlite_failure(error, path) from error
    return is_old
