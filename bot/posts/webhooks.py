"""Sends the recap and the transcript of a session that has ended to the address that the server's managers chose.

- **Who pays**: the server. A model may write the recap; its calls count in the server's hour, at each attempt.
- **Who may know**: the notice names the host, and only a session whose notice did is sent there. What is sent is what
  everybody in the channel reads of it: nothing withheld, of no one who opted out or was forgotten. It is read anew for
  each attempt, so nothing waits in a queue that somebody could take back.
- **Who takes it back**: nobody, once it has arrived; `/privacy` says whom to ask. Until then an opt-out, `/forget-me`,
  and a manager who empties or changes the address do.
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

import structlog

from bot.errors import BotError
from bot.memory.transcript_files import TranscriptFile, TranscriptFormat
from bot.outgoing_address import host_of
from bot.posts.words import transcript_file
from bot.texts.text import Text, sentence_of
from compaction.errors import StoreError

if TYPE_CHECKING:
    from datetime import tzinfo

    from bot.channel.port import RoomChannel
    from bot.clock import Clock
    from bot.memory.personal_recall import MemoryReaders
    from bot.posts.renewal import MessageEditor
    from bot.server_settings import ServerSettingsBook
    from bot.shards import Shards
    from bot.store.posted_transcripts import WebhookDelivery
    from bot.store.sessions import Sessions, StoredSession
    from bot.webhook_sender import WebhookSender
    from compaction.memory.digest import Digest

log = structlog.get_logger()

LOOK_EVERY_S = 5.0
# A server whose webhook hangs keeps no other one waiting.
AT_ONCE = 8
# The pauses after failures: 1, 4, 16, 64, 256 and 1,024 minutes. The seventh attempt, a day later, is the last.
FIRST_PAUSE_S, LONGER_BY, MOST_ATTEMPTS = 60.0, 4, 7

FAILED = Text(
    "I could not send this session to {host}. {why} I try again for one day. Server managers can "
    "change the address in /settings."
)
GIVEN_UP = Text(
    "I could not send an earlier session to {host}, and I have stopped trying. {why} You can still get "
    "it with /transcript."
)


class SessionWebhooks:
    """The sessions of one database that are to be sent. `editor`: finds the channels of this process.
    `shards`: of the servers that this process serves.

    *Ownership*: the bot runs `run` in a task.
    """

    def __init__(
        self,
        sessions: Sessions,
        readable: MemoryReaders,
        servers: ServerSettingsBook,
        sender: WebhookSender,
        editor: MessageEditor,
        *,
        shards: Shards,
        zone: tzinfo,
        clock: Clock,
    ) -> None:
        self._sender = sender
        self._editor = editor
        self._sessions = sessions
        self._readable = readable
        self._servers = servers
        self._shards = shards
        self._zone = zone
        self._clock = clock

    async def run(self) -> None:
        """Work until cancelled. *Cancellation*: what was on its way is sent again."""
        while True:
            try:
                await self.run_once()
            except StoreError as error:
                log.warning("webhooks_not_read", problem=error)
            await self._clock.sleep(LOOK_EVERY_S)

    async def run_once(self) -> None:
        """Try what is due. Raises `StoreError`."""
        due = [
            each for each in await self._sessions.webhooks.due(self._clock.now()) if self._shards.serves(each.guild_id)
        ]
        async with asyncio.TaskGroup() as tasks:
            for each in due[:AT_ONCE]:
                tasks.create_task(self._try(each), name=f"webhook-{each.session_id}")

    async def _try(self, delivery: WebhookDelivery) -> None:
        """Send a session, or try again later. What the store refuses is logged."""
        try:
            await self._deliver(delivery)
        except StoreError as error:
            log.warning("webhook_waits", session_id=delivery.session_id, problem=error)

    async def _deliver(self, delivery: WebhookDelivery) -> None:
        deliveries, webhook = self._sessions.webhooks, self._servers.of(delivery.guild_id).webhook
        session = await self._sessions.find(delivery.session_id)
        if session is None or session.channel_id is None or webhook is None or webhook.since != delivery.since:
            # People were told of another address.
            await deliveries.delete(delivery)
            return
        # Counted first: what ends the process is not tried for ever.
        pause_s = FIRST_PAUSE_S * LONGER_BY**delivery.attempts
        await deliveries.tried(delivery, again_at=self._clock.now() + pause_s)
        channel = self._editor.find_channel(delivery.guild_id, session.channel_id)
        try:
            body = await self._body(delivery.guild_id, session, channel)
            # A manager may have taken it back while a model wrote.
            if body is not None and self._servers.of(delivery.guild_id).webhook == webhook:
                await self._sender.send(webhook, session.id, body)
                log.info("webhook_delivered", session_id=session.id)
        except BotError as error:
            attempts = delivery.attempts + 1
            log.warning("webhook_not_delivered", session_id=session.id, attempts=attempts, problem=error)
            is_last = attempts >= MOST_ATTEMPTS
            if channel is not None and (attempts == 1 or is_last):
                told = GIVEN_UP if is_last else FAILED
                await channel.write(told.fill(host=host_of(webhook.address), why=sentence_of(error)))
            if not is_last:
                return
        await deliveries.delete(delivery)

    async def _body(self, guild_id: int, session: StoredSession, channel: RoomChannel | None) -> bytes | None:
        """Return what is sent of a session; None: nothing was said that may be told. Raises `StoreError`."""
        withdrawn = await self._withdrawn(guild_id, session)
        while True:
            digest = await self._readable.digests.of(session)
            file = await transcript_file(channel, session, self._readable.views, TranscriptFormat.JSON, zone=self._zone)
            # Somebody may opt out, or be forgotten, while a model writes the recap.
            before, withdrawn = withdrawn, await self._withdrawn(guild_id, session)
            if before == withdrawn:
                return await asyncio.to_thread(_body, session, digest, file) if file.lines else None

    async def _withdrawn(self, guild_id: int, session: StoredSession) -> object:
        """Return what differs once words of a session are withdrawn."""
        return await self._sessions.posted_transcripts.begin(session.id), await self._readable.views.withheld(guild_id)


def _body(session: StoredSession, digest: Digest, file: TranscriptFile) -> bytes:
    lines = {"about": digest.about, "decisions": digest.decisions, "to_do": digest.to_do, "open": digest.open}
    people = [{"name": each.name, "spoken_s": round(each.spoken_s)} for each in digest.people]
    recap = {"people": people} | {part: [each.text for each in found] for part, found in lines.items()}
    where = {"server_id": str(session.guild_id), "channel_id": str(session.channel_id)}
    content = {"type": "session.ended", "data": {**where, "recap": recap, "transcript": json.loads(file.content)}}
    return json.dumps(content, ensure_ascii=False).encode("utf-8", "replace")
