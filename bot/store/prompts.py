"""What was sent to a model and is no turn, so that it can still be known later: by digest, as the log names it.

System prompts are the operator's and our words, nobody's who was in a room. Other texts (a summary of what had no room,
what a spoken conversation is told) hold people's words: they go with their session, and all of them go when anything is
forgotten anywhere, since whose words are in them can't be told.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import delete, select

from bot.store.tables import add_once, prompts, sent_texts, sessions
from compaction.payload import text_digest

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sqlalchemy.ext.asyncio import AsyncConnection

    from bot.store.database import Database
    from compaction.model import SessionId


class PromptStore:
    """Prompts and other sent texts in an open `Database`. Raises `StoreError`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def keep(self, texts: Iterable[str]) -> None:
        """Store these prompts; one that is stored already stays."""
        async with self._database.writing() as connection:
            for text in texts:
                await add_once(connection, prompts, {"digest": text_digest(text), "text": text})

    async def keep_sent(self, session_id: SessionId, texts: Iterable[str]) -> None:
        """Store what else was sent of a session; of a session that isn't stored there is nothing to explain."""
        async with self._database.writing() as connection:
            known = select(sessions.c.id).where(sessions.c.id == session_id)
            if (await connection.execute(known)).first() is None:
                return
            for text in texts:
                values: dict[str, object] = {"session_id": session_id, "digest": text_digest(text), "text": text}
                await add_once(connection, sent_texts, values)

    async def by_digest(self, digests: Iterable[str]) -> dict[str, str]:
        """Return these prompts by digest; unknown ones are missing."""
        wanted = select(prompts).where(prompts.c.digest.in_(sorted(digests)))
        async with self._database.reading() as connection:
            return {row.digest: row.text for row in await connection.execute(wanted)}

    async def sent(self, session_id: SessionId, digests: Iterable[str]) -> dict[str, str]:
        """Return what else was sent of a session, by digest; what is gone is missing."""
        wanted = select(sent_texts).where(
            sent_texts.c.session_id == session_id, sent_texts.c.digest.in_(sorted(digests))
        )
        async with self._database.reading() as connection:
            return {row.digest: row.text for row in await connection.execute(wanted)}


async def forget_sent_texts(connection: AsyncConnection) -> None:
    """Delete all sent texts but prompts, inside a write transaction."""
    await connection.execute(delete(sent_texts))
