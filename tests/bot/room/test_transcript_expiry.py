"""What a session has posted is deleted on Discord once its session is gone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bot.room.posted_messages import TranscriptExpiry
from bot.store.posted_transcripts import PostedTranscripts, TranscriptMessage
from bot.store.sessions import Sessions
from tests.bot.evening import CHANNEL, GUILD, Evening

if TYPE_CHECKING:
    from pathlib import Path


async def test_messages_go_with_their_session(tmp_path: Path) -> None:
    """What Discord refuses is tried again; of another process's servers nothing is said to be gone."""
    async with Evening(tmp_path / "roomtone.db") as evening:
        posted = PostedTranscripts(evening.database)
        for number in (1, 2, 3):
            await posted.note(evening.session_id, TranscriptMessage(GUILD, CHANNEL, number))
        answers: dict[int, bool | None] = {1: True, 2: False, 3: None}
        asked: list[int] = []

        async def delete(_: int, __: int, message_id: int) -> bool | None:
            asked.append(message_id)
            return answers[message_id]

        expiry = TranscriptExpiry(posted)
        await expiry.run_once(delete)
        assert asked == []
        await Sessions(evening.database, evening.clock).delete(evening.session_id)
        await expiry.run_once(delete)
        assert [each.message_id for each in await posted.outdated()] == [2, 3]
        answers[2] = True
        await expiry.run_once(delete)
        assert [each.message_id for each in await posted.outdated()] == [3]
