"""PostgreSQL's notifications: short texts from one connection to all others that listen on a channel.

The server keeps a text only until everybody who listens then has it. Any user of the database may listen and notify, so
a text is neither secret nor known to be from this bot by itself (`bot.shared_log.sealed`).
"""

from __future__ import annotations

import asyncio
import hashlib
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any, Final, LiteralString

import psycopg
from psycopg import sql

from bot.store.dialects.port import MOST_NOTIFICATION_CHARS
from bot.store.dialects.postgresql_failures import postgresql_failure
from bot.store.dialects.postgresql_lock import HELD, shards_of_numbers

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Mapping

    from bot.shards import Shards

_CONNECT_S: Final = 10.0
_ANSWER_S: Final = 5.0
# After so long without a text, whether the connection is still there.
_ASK_AFTER_S: Final = 5.0


class PostgresNotifications:
    """A connection for notifications. Implements `bot.store.dialects.port.Notifications`."""

    def __init__(self, connection: psycopg.AsyncConnection[Any], place: str, schema: str) -> None:
        self._connection = connection
        self._place = place
        # A server's database may have several schemas with a bot each.
        self._suffix = hashlib.sha256(schema.encode()).hexdigest()[:16]

    async def serving(self) -> tuple[Shards, ...]:
        """See `Notifications.serving`."""
        rows = await self._execute(HELD)
        return tuple(shards_of_numbers([number for (number,) in rows]))

    async def listen(self, channel: str) -> None:
        """See `Notifications.listen`."""
        await self._execute(sql.SQL("LISTEN {}").format(sql.Identifier(self._named(channel))))

    async def tell(self, channel: str, text: str) -> None:
        """See `Notifications.tell`."""
        assert len(text) <= MOST_NOTIFICATION_CHARS, "whoever makes the text sees to its length"
        await self._execute("SELECT pg_notify(%s, %s)", [self._named(channel), text])

    async def time(self) -> float:
        """See `Notifications.time`."""
        ((now,),) = await self._execute("SELECT extract(epoch FROM clock_timestamp())::float8")
        return float(now)

    async def heard(self, within_s: float) -> list[str]:
        """See `Notifications.heard`."""
        with _translated(self._place):
            async with asyncio.timeout(within_s + _ANSWER_S):
                texts = [each.payload async for each in self._connection.notifies(timeout=within_s, stop_after=1)]
        if not texts and within_s >= _ASK_AFTER_S:
            await self._execute("SELECT 1")
        return texts

    def _named(self, channel: str) -> str:
        return f"{channel}_{self._suffix}"

    async def _execute(
        self, statement: LiteralString | sql.Composed, values: list[str] | None = None
    ) -> list[tuple[Any, ...]]:
        with _translated(self._place):
            async with asyncio.timeout(_ANSWER_S):
                cursor = await self._connection.execute(statement, values)
                return await cursor.fetchall() if cursor.description is not None else []


@asynccontextmanager
async def open_notifications(options: Mapping[str, Any], place: str) -> AsyncIterator[PostgresNotifications]:
    """Connect, and close the connection at the end. Raises `StoreError`."""
    with _translated(place):
        async with asyncio.timeout(_CONNECT_S):
            connection = await psycopg.AsyncConnection.connect(**{**options, "autocommit": True})
    try:
        with _translated(place):
            async with asyncio.timeout(_ANSWER_S):
                row = await (await connection.execute("SELECT coalesce(current_schema(), '')")).fetchone()
        assert row is not None, "it selects one row"
        yield PostgresNotifications(connection, place, row[0])
    finally:
        await connection.close()


@contextmanager
def _translated(place: str) -> Iterator[None]:
    try:
        yield
    except (psycopg.Error, TimeoutError, OSError) as error:
        # `from None`: the details of PostgreSQL's messages quote what was sent.
        raise postgresql_failure(error, place) from None
