"""The system prompts that were sent, by digest: settings change, and what a model was told must still be known.

They are the operator's and our words; nobody's who was in a room.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import select

from bot.store.kept import prompts
from bot.store.schema import add_once
from compaction.payload import text_digest

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bot.store.database import Database


class PromptShelf:
    """Prompts in an open `Database`. Raises `StoreError`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def keep(self, texts: Iterable[str]) -> None:
        """Store these prompts; one that is stored already stays."""
        async with self._database.writing() as connection:
            for text in texts:
                await add_once(connection, prompts, {"digest": text_digest(text), "text": text})

    async def by_digest(self, digests: Iterable[str]) -> dict[str, str]:
        """Return these prompts by digest; unknown ones are missing."""
        wanted = select(prompts).where(prompts.c.digest.in_(sorted(digests)))
        async with self._database.reading() as connection:
            return {row.digest: row.text for row in await connection.execute(wanted)}
