"""Runs reads in threads of its own: several statements in one trip to a thread and back.

Use it for reads that somebody waits for. SQLAlchemy's async connections make one trip for each statement and two more
for the transaction; a search has a dozen statements. Owns its threads and their read-only connections.
"""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable


class _Closable(Protocol):
    def close(self) -> None: ...


T = TypeVar("T")
C = TypeVar("C", bound=_Closable)

# One search reads full text and embeddings at the same time; a third thread would only wait for a processor.
THREADS = 2


class ThreadedReader(Generic[C]):
    """Reader threads of one database. Safe for all tasks of one event loop. Call `aclose` at the end.

    `connect`: opens the connection of one thread. It is closed from another thread, after its own has ended.
    """

    def __init__(self, connect: Callable[[], C]) -> None:
        self._connect = connect
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="store-reader")
        self._own = threading.local()
        self._opened: list[C] = []

    async def read(self, work: Callable[[C], T]) -> T:
        """Run `work` with a connection in one of the threads and return its result. Raises the driver's errors.

        *Cancellation*: the read runs to its end and its result is discarded.
        """
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._with_connection, work)

    async def aclose(self) -> None:
        """Wait for running reads, then close the connections."""
        await asyncio.to_thread(self._threads.shutdown, wait=True, cancel_futures=True)
        for connection in self._opened:
            connection.close()
        self._opened.clear()

    def _with_connection(self, work: Callable[[C], T]) -> T:
        connection: C | None = getattr(self._own, "connection", None)
        if connection is None:
            connection = self._own.connection = self._connect()
            self._opened.append(connection)
        return work(connection)
