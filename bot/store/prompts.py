"""Stores the texts that were sent to a model and are not turns, by the digest in the log, so `explain` can show them.

System prompts contain nothing that people said. Other texts may contain speech, for example a summary of messages that
did not fit. They are deleted with their session. All of them are deleted whenever anything is forgotten, because nobody
can tell whose words they contain.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import delete, select

from bot.store.inserts import add_once
from bot.store.tables import prompts, sent_texts, sessions
from compaction.payload import text_digest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from sqlalchemy.ext.asyncio import AsyncConnection

    from bot.store.database import Database
    from compaction.model import SessionId


class PromptStore:
    """Prompts and other sent texts in an open `Database`. Raises `StoreError`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def store_prompts(self, texts: Iterable[str]) -> None:
        """Store these prompts, unless they are stored already."""
        async with self._database.writing() as connection:
            for text in texts:
                await add_once(connection, prompts, {"digest": text_digest(text), "text": text})

    async def store_sent_texts(
        self, session_id: SessionId, texts: Iterable[str], *, is_current: Callable[[int], bool]
    ) -> bool:
        """Store other texts sent in a session. Does nothing if the session is not stored.

        `is_current`: returns whether nobody else has made this revision since the texts were sent. Otherwise something
        may have been forgotten: nothing is stored, and the result is False.
        """
        async with self._database.writing() as connection:
            stored = await connection.scalar(select(sessions.c.revision).where(sessions.c.id == session_id))
            if stored is None:
                return True
            if not is_current(stored):
                return False
            for text in texts:
                values: dict[str, object] = {"session_id": session_id, "digest": text_digest(text), "text": text}
                await add_once(connection, sent_texts, values)
        return True

    async def prompts_by_digest(self, digests: Iterable[str]) -> dict[str, str]:
        """Return these prompts by digest; unknown ones are missing."""
        wanted = select(prompts).where(prompts.c.digest.in_(sorted(digests)))
        async with self._database.reading() as connection:
            return {row.digest: row.text for row in await connection.execute(wanted)}

    async def sent_texts(self, session_id: SessionId, digests: Iterable[str]) -> dict[str, str]:
        """Return other texts sent in a session by digest; deleted ones are missing."""
        wanted = select(sent_texts).where(
            sent_texts.c.session_id == session_id, sent_texts.c.digest.in_(sorted(digests))
        )
        async with self._database.reading() as connection:
            return {row.digest: row.text for row in await connection.execute(wanted)}


async def forget_sent_texts(connection: AsyncConnection) -> None:
    """Delete all sent texts except prompts, inside a write transaction."""
    await connection.execute(delete(sent_texts))
