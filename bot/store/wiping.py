"""Removes the bytes of deleted text from the search index's pages and from the journal.

SQLite overwrites deleted rows itself (`PRAGMA secure_delete`), but the search index keeps deleted words until its pages
are merged, unused parts of pages keep copies until the database is written anew, and the journal keeps them until it is
truncated.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from bot.store.vector_store import VectorStore

if TYPE_CHECKING:
    from bot.store.database import Database

log = structlog.get_logger()

# Each try waits for readers as long as a connection waits for a lock, so more tries would keep writers waiting.
_TRIES = 2


async def wipe_deleted(database: Database) -> bool:
    """Remove the bytes of everything that was deleted. Raises `StoreError`.

    Returns False if another connection was reading all the time, so that the journal may still have deleted text.
    """
    await VectorStore(database).purge()
    await database.vacuum()
    for _ in range(_TRIES):
        if await database.checkpoint():
            return True
    log.warning("journal_not_truncated", remedy="close other programs that read the database")
    return False
