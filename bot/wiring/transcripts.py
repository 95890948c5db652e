"""Reads a session as the file that its channel gets after /listen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bot.memory.transcript_files import TranscriptFile, TranscriptFormat, TranscriptHead, write_transcript

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from datetime import tzinfo

    from bot.channel.port import Place
    from bot.memory.session_reader import SessionReader
    from bot.store.sessions import Sessions
    from compaction.model import SessionId


def transcript_reader(
    sessions: Sessions, reader: SessionReader, *, zone: tzinfo
) -> Callable[[SessionId, Place], Awaitable[TranscriptFile]]:
    """Return the function that reads a session as Markdown, without withheld words. It raises `StoreError`."""

    async def read(session_id: SessionId, place: Place) -> TranscriptFile:
        session = await sessions.find(session_id)
        if session is None:
            return TranscriptFile("transcript.md", b"", 0, 0)
        found = await reader.read(session)
        head = TranscriptHead(
            session_id, place.guild_name, place.name, session.started_at, session.ended_at, missing=found.cut
        )
        return write_transcript(found.turns, head, TranscriptFormat.MARKDOWN, zone=zone)

    return read
