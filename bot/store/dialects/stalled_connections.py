"""Gives up connections to a SQLite file whose thread does not come back: a disk that does not answer holds it.

Such a thread cannot be ended. SQLAlchemy waits for it when a statement is cancelled, without a limit, so neither the
time limit of a transaction nor the end of a room would end the wait, and nobody would be told of the disk.
"""

from __future__ import annotations

import asyncio
import sqlite3
from typing import TYPE_CHECKING, Any, Final

import structlog
from sqlalchemy import event
from sqlalchemy.exc import MissingGreenlet

if TYPE_CHECKING:
    from sqlalchemy.engine.interfaces import DBAPIConnection
    from sqlalchemy.ext.asyncio import AsyncEngine

log = structlog.get_logger()

# How long to wait for a thread, besides the time that it may wait for another program's lock.
WAIT_S: Final = 1.0
# Threads that may be left behind before no further connection is opened: each write would leave one.
MOST_LEFT: Final = 3


class StalledConnections:
    """The connections of one engine that were given up. `wait_s`: how long a cancelled statement may take to end.

    A thread that was left behind closes its connection, and ends, if it ever comes back.
    """

    def __init__(self, engine: AsyncEngine, *, wait_s: float) -> None:
        self._wait_s = wait_s
        # Each is done when its thread has ended.
        self._left: list[asyncio.Future[Any]] = []
        engine.dialect.do_terminate = self._terminate  # type: ignore[method-assign]
        event.listen(engine.sync_engine, "do_connect", self._refuse_if_too_many)

    @property
    def count(self) -> int:
        """Return how many threads have not come back."""
        return sum(not ended.done() for ended in self._left)

    def _terminate(self, dbapi_connection: DBAPIConnection) -> None:
        """Close a connection that was cancelled. In place of the dialect's own `do_terminate`."""
        try:
            # After a cancelled SELECT, closing alone does not end the transaction: the half-read cursor keeps it and
            # its lock for as long as somebody holds the cancelled task.
            has_answered = dbapi_connection.run_async(self._rolled_back)
        except MissingGreenlet:
            # Outside a greenlet nothing is open and nothing can wait.
            has_answered = True
        if has_answered:
            dbapi_connection.terminate()

    async def _rolled_back(self, driver: Any) -> bool:
        """Return whether the thread of a connection has answered. Otherwise it is left behind."""
        has_answered = False
        try:
            async with asyncio.timeout(self._wait_s):
                await driver.rollback()
            has_answered = True
        except TimeoutError:
            log.error(  # noqa: TRY400 - nothing here failed
                "database_thread_left_behind", left_behind=self.count + 1, most=MOST_LEFT, remedy="look at the disk"
            )
        except (sqlite3.Error, ValueError):
            # It has answered; the driver raises a `ValueError` where the connection is closed already.
            has_answered = True
        finally:
            if not has_answered and (ended := driver.stop()) is not None:
                self._left = [each for each in self._left if not each.done()] + [ended]
        return has_answered

    def _refuse_if_too_many(self, *_: object) -> None:
        """Raise `TimeoutError` instead of opening a connection that would hang like the others."""
        if self.count >= MOST_LEFT:
            raise TimeoutError(f"{self.count} connections have not answered")
