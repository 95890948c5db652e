"""The recap of a session that has ended, posted into the voice channel's chat. `bot.posts.renewal` sees to what was
posted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from bot.channel.port import RECAP, Card, ChatError, RoomChannel
from bot.store.posted_transcripts import PostedKind, PostedTranscripts, TranscriptMessage
from bot.words import SESSION, Leased, Words
from compaction.errors import StoreError
from voice.cancellation import run_shielded

if TYPE_CHECKING:
    from bot.memory.digests import Digests
    from bot.store.sessions import Sessions
    from compaction.memory.digest import Digest
    from compaction.model import SessionId

log = structlog.get_logger()

# A recap of less would be as long as the conversation.
LEAST_SAID = 6
# Nobody can call the bot back before.
MODEL_TIMEOUT_S = 8.0


async def post_recap(
    channel: RoomChannel,
    session_id: SessionId,
    sessions: Sessions,
    posted: PostedTranscripts,
    digests: Digests,
    *,
    words: Words,
    hurried: bool,
) -> None:
    """Post the recap of a session that has just ended. `words`: its. `hurried`: there is no time for a model. A failure
    is logged.
    """
    lease = words.lease({SESSION}, since=None)
    try:
        session = await sessions.find(session_id)
        if session is None:
            return
        begun = await posted.begin(session_id)
        digest = await digests.of(session, model_timeout_s=0.0 if hurried else MODEL_TIMEOUT_S)
    except StoreError as error:
        log.warning("recap_not_posted", session_id=session_id, problem=error)
        return
    if digest.turn_count < LEAST_SAID:
        log.info("recap_not_posted", session_id=session_id, reason="too_little_said")
        return
    # A room that is cut off now would leave a message behind without words.
    await run_shielded(
        _post(Leased(digest, lease), channel, session_id, posted, begun=begun), name=f"recap-{channel.guild_id}"
    )


async def _post(
    made: Leased[Digest], channel: RoomChannel, session_id: SessionId, posted: PostedTranscripts, *, begun: int | None
) -> None:
    """Post a recap into a message that is remembered: it is made anew when words in it are forgotten, and goes with its
    session.
    """
    posts = channel.posts
    try:
        message_id = await posts.begin(Card(RECAP.fill(channel=channel.name)))
        message = TranscriptMessage(channel.guild_id, channel.channel_id, message_id)
        # If Discord does not take the words now, they come when it is made anew.
        async with posted.filling(session_id, message, PostedKind.RECAP, begun=begun):
            if (digest := made.take()) is not None:
                await posts.fill(message_id, digest)
        if not made.lease.valid:
            # Without what was taken back it is made anew.
            await posted.mark({message_id})
    except (ChatError, StoreError) as error:
        log.warning("recap_not_posted", session_id=session_id, problem=error)
        return
    log.info("recap_posted", session_id=session_id)
