"""Remembers which messages on Discord have words of a session, so that they go with the session, and with the words.

A row outlives its session: it says what is still to be deleted on Discord (`bot.posts.renewal`). What is
forgotten marks the messages that may have it, in the same transaction. `WebhookDeliveries` has the sessions that are
still to be sent to the webhook which their notice named. Raises `StoreError`.
"""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby
from typing import TYPE_CHECKING, Any

from sqlalchemy import Row, Select, Update, case, delete, exists, select, update

from bot.store.claims import writing_session
from bot.store.inserts import add_once, put_row
from bot.store.tables import posted_transcripts, sessions, webhook_deliveries
from compaction.model import Seq, SessionId

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Collection, Sequence

    from sqlalchemy.ext.asyncio import AsyncConnection

    from bot.clock import Clock
    from bot.store.database import Database


class PostedKind(StrEnum):
    """What a message has of its session: its recap, all of it as a file, or some lines."""

    RECAP = "recap"
    FILE = "file"
    LINES = "lines"


@dataclass(frozen=True, slots=True)
class TranscriptMessage:
    """A message of the bot. `channel_id`: the channel or the thread that it is in."""

    guild_id: int
    channel_id: int
    message_id: int


@dataclass(frozen=True, slots=True)
class StalePost:
    """Messages that may have forgotten words. `turns`: the first and the last turn that lines are of; None for all of
    the session. Several messages have the lines of one long turn. `left_out`: the turns among them that were
    withheld when it was posted. `stale_at`: when it was last marked.
    """

    session_id: SessionId
    kind: PostedKind
    turns: tuple[Seq, Seq] | None
    messages: tuple[TranscriptMessage, ...]
    left_out: frozenset[int]
    stale_at: float


class PostedTranscripts:
    """The posted transcripts and recaps of one database. Safe for all tasks of one event loop."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        # The messages into which this process puts words now.
        self._being_filled: set[int] = set()

    async def begin(self, session_id: SessionId) -> int | None:
        """Return what `filling` compares: how often something of the session was forgotten. Call it before reading what
        is posted.
        """
        found: int | None = await self._database.value(_forgettings_of(session_id))
        return found

    @asynccontextmanager
    async def filling(
        self,
        session_id: SessionId,
        posted: TranscriptMessage,
        kind: PostedKind,
        *,
        begun: int | None,
        turns: tuple[Seq, Seq] | None = None,
        left_out: Collection[Seq] = (),
    ) -> AsyncIterator[None]:
        """Note a message into which the block puts words of a session, or more of them. No words may be in it before
        that are not noted. `left_out`: the turns between `turns` that are withheld now; they stay out.

        It is stale until the block has ended in order, and stays so if something was forgotten since `begun`. Meanwhile
        nobody else makes it anew.
        """
        values: dict[str, object] = {
            "session_id": session_id,
            "guild_id": posted.guild_id,
            "channel_id": posted.channel_id,
            "kind": kind,
            "from_seq": None if turns is None else turns[0],
            "to_seq": None if turns is None else turns[1],
            "left_out": json.dumps(sorted(left_out)),
            "stale_at": self._clock.now(),
        }
        self._being_filled.add(posted.message_id)
        try:
            async with writing_session(self._database, session_id) as connection:
                await put_row(connection, posted_transcripts, {"message_id": posted.message_id}, values)
            yield
        finally:
            self._being_filled.discard(posted.message_id)
        async with writing_session(self._database, session_id) as connection:
            if await connection.scalar(_forgettings_of(session_id)) == begun:
                this = posted_transcripts.c.message_id == posted.message_id
                await connection.execute(update(posted_transcripts).where(this).values(stale_at=None))

    async def mark(self, message_ids: Collection[int]) -> None:
        """Mark messages that may have words which were forgotten before they were posted."""
        of_these = posted_transcripts.c.message_id.in_(list(message_ids))
        await self._database.change(_marked(self._clock.now()).where(of_these))

    async def outdated(self) -> tuple[TranscriptMessage, ...]:
        """Return messages whose session was deleted."""
        kept = exists().where(sessions.c.id == posted_transcripts.c.session_id)
        wanted = select(posted_transcripts).where(~kept).order_by(posted_transcripts.c.message_id)
        return tuple(map(_message, await self._database.rows(wanted)))

    async def stale(self) -> tuple[StalePost, ...]:
        """Return what has to be made anew and is not being filled, the messages of one long turn together."""
        row = posted_transcripts.c
        kept = exists().where(sessions.c.id == row.session_id)
        marked = select(posted_transcripts).where(row.stale_at.is_not(None), kept)
        found = await self._database.rows(marked.order_by(row.session_id, row.kind, row.from_seq, row.message_id))
        # Each recap and file by itself.
        together = groupby(
            found, key=lambda each: (each.session_id, each.kind, each.from_seq, each.to_seq or each.message_id)
        )
        found_posts = (_stale(list(rows)) for _, rows in together)
        return tuple(
            post for post in found_posts if self._being_filled.isdisjoint(each.message_id for each in post.messages)
        )

    async def renewed(self, post: StalePost, *, deleted: Collection[TranscriptMessage]) -> None:
        """Note that messages were made anew, unless more was forgotten meanwhile. `deleted`: those that are gone."""
        for each in deleted:
            await self.deleted(each)
        ids = [each.message_id for each in post.messages]
        same = posted_transcripts.c.message_id.in_(ids) & (posted_transcripts.c.stale_at <= post.stale_at)
        await self._database.change(update(posted_transcripts).where(same).values(stale_at=None))

    async def deleted(self, posted: TranscriptMessage) -> None:
        """Note that a message is gone."""
        gone = posted_transcripts.c.message_id == posted.message_id
        await self._database.change(delete(posted_transcripts).where(gone))


def _forgettings_of(session_id: SessionId) -> Select[Any]:
    return select(sessions.c.forgettings).where(sessions.c.id == session_id)


async def mark_stale(connection: AsyncConnection, session_id: SessionId, seqs: Collection[int], *, now: float) -> None:
    """Mark the messages that may have words of these turns, inside the write transaction that forgets them."""
    row = posted_transcripts.c
    found = (await connection.execute(select(posted_transcripts).where(row.session_id == session_id))).all()
    ids = [
        each.message_id
        for each in found
        if each.from_seq is None or any(each.from_seq <= seq <= each.to_seq for seq in seqs)
    ]
    await connection.execute(_marked(now).where(row.message_id.in_(ids)))


def _marked(now: float) -> Update:
    """Return what marks messages anew. The mark rises each time, also if the clock was set back meanwhile."""
    before = posted_transcripts.c.stale_at
    return update(posted_transcripts).values(stale_at=case((before >= now, before + 1), else_=now))


def _message(row: Row[Any]) -> TranscriptMessage:
    return TranscriptMessage(row.guild_id, row.channel_id, row.message_id)


def _stale(rows: Sequence[Row[Any]]) -> StalePost:
    first = rows[0]
    turns = None if first.from_seq is None else (Seq(first.from_seq), Seq(first.to_seq))
    return StalePost(
        SessionId(first.session_id),
        PostedKind(first.kind),
        turns,
        tuple(map(_message, rows)),
        frozenset(seq for each in rows for seq in json.loads(each.left_out)),
        max(each.stale_at for each in rows),
    )


@dataclass(frozen=True, slots=True)
class WebhookDelivery:
    """A session that has ended and is to be sent. `since`: of its `Webhook`. `attempts`: how often it was tried."""

    session_id: SessionId
    guild_id: int
    since: float
    attempts: int


class WebhookDeliveries:
    """The deliveries in one database. Safe for all tasks of one event loop."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def expect(self, session_id: SessionId, *, since: float) -> None:
        """Store that the notice of a session names this webhook: it is sent there when it has ended."""
        async with self._database.writing() as connection:
            await add_once(connection, webhook_deliveries, {"session_id": session_id, "since": since})

    async def due(self, now: float) -> tuple[WebhookDelivery, ...]:
        """Return those of all servers that are to be tried now, the one that has waited longest first."""
        row = webhook_deliveries.c
        wanted = (
            select(sessions.c.guild_id, row.session_id, row.since, row.attempts)
            .join(sessions, sessions.c.id == row.session_id)
            .where(sessions.c.ended_at.is_not(None), sessions.c.guild_id.is_not(None), row.due_at <= now)
            .order_by(row.due_at, row.session_id)
        )
        return tuple(
            WebhookDelivery(SessionId(found.session_id), found.guild_id, found.since, found.attempts)
            for found in await self._database.rows(wanted)
        )

    async def tried(self, delivery: WebhookDelivery, *, again_at: float) -> None:
        """Count an attempt, and wait with the next one until then (UTC epoch seconds)."""
        later = update(webhook_deliveries).values(attempts=delivery.attempts + 1, due_at=again_at)
        await self._database.change(later.where(webhook_deliveries.c.session_id == delivery.session_id))

    async def delete(self, delivery: WebhookDelivery) -> None:
        """Store that it is sent, or will not be."""
        gone = delete(webhook_deliveries).where(webhook_deliveries.c.session_id == delivery.session_id)
        await self._database.change(gone)
