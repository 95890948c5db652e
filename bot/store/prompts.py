"""Stores the texts that were sent to a model and are not turns, by the digest in the log, so `explain` can show them.

System prompts contain nothing that people said in conversations, but what a server's moderators wrote. Many sessions
are sent the same ones, so each is stored once, and goes with the last session that was sent it, or when it was last
sent too long ago. A session loses its own when somebody in it is forgotten; what is still in use is stored again.
Other texts may contain speech, for example a summary of messages that did not fit. They are deleted with their session.
All of a server are deleted whenever anything of it is forgotten, because nobody can tell whose words they contain.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import delete, or_, select

from bot.store.inserts import add_once, put_row
from bot.store.tables import prompts, sent_prompts, sent_texts, sessions
from compaction.payload import text_digest

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from sqlalchemy.ext.asyncio import AsyncConnection

    from bot.store.database import Database
    from compaction.model import SessionId

# A prompt that is sent again and again is noted again after this time, and not at each reply.
RENEWED_S = 3600.0


class PromptStore:
    """Prompts and other sent texts in an open `Database`. Raises `StoreError`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def store_prompts(self, session_id: SessionId, texts: Iterable[str], *, sent_at: float) -> None:
        """Store these prompts, unless they are stored already, and that a session was sent them. Does nothing if the
        session is not stored. `sent_at`: when last, UTC epoch seconds.

        Call it again for a prompt that is sent `RENEWED_S` later or after that.
        """
        async with self._database.writing() as connection:
            if await connection.scalar(select(sessions.c.id).where(sessions.c.id == session_id)) is None:
                return
            for text in texts:
                digest = text_digest(text)
                await add_once(connection, prompts, {"digest": digest, "text": text})
                key: dict[str, object] = {"session_id": session_id, "digest": digest}
                await put_row(connection, sent_prompts, key, {"sent_at": sent_at})

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


async def forget_sent_texts(connection: AsyncConnection, guild_ids: Collection[int | None]) -> int:
    """Delete all sent texts except prompts of these servers and of no server, inside a write transaction. Returns how
    many.
    """
    of_servers = sessions.c.guild_id.in_([each for each in guild_ids if each is not None])
    theirs = select(sessions.c.id).where(or_(sessions.c.guild_id.is_(None), of_servers))
    return (await connection.execute(delete(sent_texts).where(sent_texts.c.session_id.in_(theirs)))).rowcount
