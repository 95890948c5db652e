"""Removes the bytes of deleted text from the search index and from the database's files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bot.store.search.vector_store import VectorStore

if TYPE_CHECKING:
    from bot.store.database import Database


async def wipe_deleted(database: Database) -> bool:
    """Remove the bytes of everything that was deleted. Raises `StoreError`.

    Returns False if another connection was reading all the time, so that there may still be deleted text.
    """
    await VectorStore(database).purge()
    return await database.wipe()
