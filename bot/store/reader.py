"""Runs reads in threads of its own: several statements in one trip to a thread and back.

Use it for reads that somebody waits for. SQLAlchemy's async connections make one trip for each statement and two more
for the transaction; a search has a dozen statements. Owns its threads and their read-only connections.
"""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

T = TypeVar("T")

# One search reads full text and embeddings at the same time; a third thread would only wait for a processor.
THREADS = 2
# Prepared statements are cached: those of searches differ only in the number of terms.
_PREPARED = 256


class ThreadedReader:
    """Reader threads of one database. Safe for all tasks of one event loop. Call `aclose` at the end."""

    def __init__(self, path: Path, *, busy_timeout_s: float) -> None:
        self._path = path
        self._busy_timeout_s = busy_timeout_s
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="store-reader")
        self._own = threading.local()
        self._opened: list[sqlite3.Connection] = []

    async def read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run `work` with a connection in one of the threads and return its result. Raises `sqlite3.Error`.

        *Cancellation*: the read runs to its end and its result is discarded.
        """
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._with_connection, work)

    async def aclose(self) -> None:
        """Wait for running reads, then close the connections."""
        await asyncio.to_thread(self._threads.shutdown, wait=True, cancel_futures=True)
        for connection in self._opened:
            connection.close()
        self._opened.clear()

    def _with_connection(self, work: Callable[[sqlite3.Connection], T]) -> T:
        connection: sqlite3.Connection | None = getattr(self._own, "connection", None)
        if connection is None:
            connection = self._own.connection = self._open()
        return work(connection)

    def _open(self) -> sqlite3.Connection:
        # `aclose` closes it from another thread, after this thread has ended.
        connection = sqlite3.connect(
            self._path,
            timeout=self._busy_timeout_s,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=_PREPARED,
        )
        self._opened.append(connection)
        connection.execute("PRAGMA query_only = ON")
        return connection
