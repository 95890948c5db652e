"""Reads the database in threads of its own: one way there and back for as many statements as belong together.

For what somebody waits for. SQLAlchemy's connections take a way for each statement, and two more to begin and end; a
search asks a dozen. Owns its threads and their connections, which can't write.
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

# Full text beside the embeddings of one search; a third would only wait for a processor.
THREADS = 2
# Statements are prepared once: a search's differ in their number of terms alone.
_PREPARED = 256


class ThreadedReader:
    """Threads that read one database. Safe for all tasks of one loop; `aclose` ends them."""

    def __init__(self, path: Path, *, busy_timeout_s: float) -> None:
        self._path = path
        self._busy_timeout_s = busy_timeout_s
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="store-reader")
        self._own = threading.local()
        self._opened: list[sqlite3.Connection] = []

    async def read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Return what `work` makes of a connection, in one of the threads. Raises sqlite3.Error.

        *Cancellation*: what is being read is read to its end, and thrown away.
        """
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._with_connection, work)

    async def aclose(self) -> None:
        """Let what is being read end, then close the connections."""
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
        # It is closed by another thread, after this one has ended.
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
