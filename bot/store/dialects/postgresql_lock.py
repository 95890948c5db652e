"""Keeps a second bot away from a PostgreSQL database: two would join the same channels and answer twice.

The lock is an advisory one of a connection of its own, so it ends with its process, however that ends. Commands such as
`roomtone explain` do not take it. If the connection is lost, a task takes the lock again.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

import psycopg
import structlog

from bot.texts.text import Text
from compaction.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

log = structlog.get_logger()

# The bot before may still be closing, or its machine may have died: the server notices that within half a minute.
WAIT_S = 40.0
_RETRY_S = 1.0
CHECK_S = 10.0
_ANSWER_S = 5.0
# One lock for the tables that the search path names.
_LOCK = "SELECT pg_try_advisory_lock(hashtextextended('roomtone bot ' || current_schema(), 0))"


@asynccontextmanager
async def held_lock(options: Mapping[str, Any], place: str, *, wait_s: float = WAIT_S) -> AsyncIterator[None]:
    """Hold the lock of the one bot. Owns the task `store-bot-lock`.

    Raises `StoreError` if another bot has it for longer than `wait_s`, and `psycopg.Error`.
    """
    lock = _HeldLock(options, place, await _locked(options, place, wait_s))
    task = asyncio.create_task(lock.keep(), name="store-bot-lock")
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        await lock.release()


async def _locked(options: Mapping[str, Any], place: str, wait_s: float) -> psycopg.AsyncConnection[Any]:
    """Return a connection that holds the lock."""
    until = asyncio.get_running_loop().time() + wait_s
    while True:
        connection = await psycopg.AsyncConnection.connect(**{**options, "autocommit": True})
        try:
            async with asyncio.timeout(_ANSWER_S):
                row = await (await connection.execute(_LOCK)).fetchone()
            if row is not None and row[0]:
                return connection
        except BaseException:
            await connection.close()
            raise
        await connection.close()
        if asyncio.get_running_loop().time() >= until:
            raise StoreError(
                Text(
                    "Another bot runs with {path}. Stop it, or give each a database of its own: two would answer "
                    "twice.",
                    path=place,
                )
            )
        await asyncio.sleep(_RETRY_S)


class _HeldLock:
    """The lock, and the connection that has it: None while it is lost."""

    def __init__(self, options: Mapping[str, Any], place: str, connection: psycopg.AsyncConnection[Any]) -> None:
        self._options = options
        self._place = place
        self._connection: psycopg.AsyncConnection[Any] | None = connection

    async def keep(self) -> None:
        """Ask the connection now and then, and take the lock again if it was lost."""
        while True:
            await asyncio.sleep(CHECK_S)
            try:
                await self._check()
            except StoreError as error:
                log.error("second_bot_on_database", problem=error)  # noqa: TRY400 - a sentence, no traceback
            except (psycopg.Error, TimeoutError, OSError):
                if self._connection is not None:
                    log.warning("bot_lock_lost", remedy="look at the server of the database")
                await self.release()

    async def _check(self) -> None:
        if self._connection is None:
            self._connection = await _locked(self._options, self._place, 0.0)
            log.info("bot_lock_held_again")
        async with asyncio.timeout(_ANSWER_S):
            await self._connection.execute("SELECT 1")

    async def release(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()
