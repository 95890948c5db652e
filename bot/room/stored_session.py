"""The stored session of one stay: what becomes of it and of earlier ones, and what observers see of its folds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from bot import events
from compaction.errors import StaleOwnerError, StoreError
from compaction.events import FoldFailed, FoldLanded

if TYPE_CHECKING:
    from bot.store.sessions import OpenedSession, Sessions
    from compaction.events import CompactionEvent

log = structlog.get_logger()


async def end_earlier(sessions: Sessions, opened: OpenedSession, guild_id: int) -> None:
    """End what earlier rooms have left open in other channels: a server has one room at a time, and none of them goes
    on. The bot would come back there at a later start. Raises `StoreError`.
    """
    for each in await sessions.end_open(guild_id, but=opened.session.id):
        log.info("open_session_ended", ended_session_id=each)


async def discard_unused(sessions: Sessions, opened: OpenedSession, *, is_used: bool) -> None:
    """Delete a session that was begun for a channel that the bot never joined. `is_used`: it has joined.

    One that was resumed is kept, also if an earlier room that never joined could not delete it: nothing stored says so.
    It ends as any session does that has been silent for too long (`Sessions.open`), or is deleted after a week
    (`bot.memory.retention`).
    """
    if opened.resumed or is_used:
        return
    try:
        await sessions.discard(opened)
    except (StoreError, StaleOwnerError) as error:
        log.warning("session_not_discarded", problem=error)


def compaction_event(event: CompactionEvent, now: float) -> events.Event | None:
    """Return what observers of the room see of a fold; None: nothing. `now`: monotonic seconds."""
    match event:
        case FoldLanded():
            return events.CompactionLanded(
                old_cursor=event.old_cursor,
                new_cursor=event.new_cursor,
                covered_through_turn=event.covered_through_turn,
                summary=event.summary,
                latency_ms=event.latency_ms,
                at=now,
            )
        case FoldFailed():
            return events.CompactionFailed(event.cursor, event.error, now, event.latency_ms)
        case _:
            return None
