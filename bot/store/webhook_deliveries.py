"""Stores which sessions are to be sent to the webhook that their notice named (`bot.posts.webhooks`), and when to try.

A row has no words, and goes with its session. Raises `StoreError`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import delete, select, update

from bot.store.inserts import add_once
from bot.store.tables import sessions, webhook_deliveries
from compaction.model import SessionId

if TYPE_CHECKING:
    from bot.store.database import Database


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
