"""Remembers which messages on Discord have the words of a session, so that they go with the session.

A row outlives its session: it says what is still to be deleted on Discord (`bot.room.posted_messages`).
Raises `StoreError`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import delete, exists, select

from bot.store.inserts import add_once
from bot.store.tables import posted_transcripts, sessions

if TYPE_CHECKING:
    from bot.store.database import Database
    from compaction.model import SessionId


@dataclass(frozen=True, slots=True)
class TranscriptMessage:
    """A message of the bot. `channel_id`: the channel or the thread that it is in."""

    guild_id: int
    channel_id: int
    message_id: int


class PostedTranscripts:
    """The posted transcripts of one database. Safe for all tasks of one event loop."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def note(self, session_id: SessionId, posted: TranscriptMessage) -> None:
        """Note that a message has words of a session."""
        values: dict[str, object] = {
            "session_id": session_id,
            "guild_id": posted.guild_id,
            "channel_id": posted.channel_id,
            "message_id": posted.message_id,
        }
        async with self._database.writing() as connection:
            await add_once(connection, posted_transcripts, values)

    async def outdated(self) -> tuple[TranscriptMessage, ...]:
        """Return messages whose session was deleted."""
        kept = exists().where(sessions.c.id == posted_transcripts.c.session_id)
        wanted = select(posted_transcripts).where(~kept).order_by(posted_transcripts.c.message_id)
        found = await self._database.rows(wanted)
        return tuple(TranscriptMessage(row.guild_id, row.channel_id, row.message_id) for row in found)

    async def deleted(self, posted: TranscriptMessage) -> None:
        """Note that a message is gone."""
        gone = posted_transcripts.c.message_id == posted.message_id
        await self._database.change(delete(posted_transcripts).where(gone))
