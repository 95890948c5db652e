"""Posts what a session was about into the voice channel's chat when it ends, on servers that have chosen it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from bot.room.endings import MOVED, NOT_ANNOUNCED, PROCESS_ENDS
from compaction.errors import StoreError
from voice.shielded import run_shielded

if TYPE_CHECKING:
    from bot.channel.port import Place
    from bot.room.services import RoomServices
    from bot.store.sessions import Sessions
    from compaction.memory.digest import Digest
    from compaction.model import SessionId

log = structlog.get_logger()

# A recap of less would be as long as the conversation.
LEAST_SAID = 6
# Nobody can call the bot back before.
MODEL_TIMEOUT_S = 8.0
# The process ends, or people wait in another channel: no time for a model.
_HURRIED = frozenset({PROCESS_ENDS, MOVED})


async def post_recap(session_id: SessionId, place: Place, services: RoomServices, *, reason: str) -> None:
    """Post the recap of a session that has just ended. `reason`: why it ended. A failure is logged."""
    sessions, readable = services.memory.sessions, services.memory.readable
    if readable is None or reason == NOT_ANNOUNCED or not services.servers.of(place.guild_id).posts_recap:
        return
    try:
        session = await sessions.find(session_id)
        if session is None:
            return
        await sessions.recap_begun(session_id)
        digest = await readable.digests.of(session, model_timeout_s=0.0 if reason in _HURRIED else MODEL_TIMEOUT_S)
    except StoreError as error:
        log.warning("recap_not_posted", session_id=session_id, problem=error)
        return
    if digest.turn_count < LEAST_SAID:
        log.info("recap_not_posted", session_id=session_id, reason="too_little_said")
        return
    # A room that is cut off now would leave a message behind from which nothing is ever forgotten.
    await run_shielded(_post(digest, session_id, place, sessions), name=f"recap-{place.guild_id}")


async def _post(digest: Digest, session_id: SessionId, place: Place, sessions: Sessions) -> None:
    """Post a recap, and remember in which message."""
    message_id = await place.write_recap(digest)
    if message_id is None:
        log.info("recap_not_posted", session_id=session_id, reason="discord_refused")
        return
    log.info("recap_posted", session_id=session_id)
    try:
        # So that it can be made anew when words in it are forgotten.
        await sessions.recap_posted(session_id, message_id)
    except StoreError as error:
        log.warning("recap_not_remembered", session_id=session_id, problem=error)
        await place.renew_recap(message_id, None)
