"""The database's disk in virtual time: the driver's threads are replaced, and statements fail, hang and come back.

A statement runs at once, on the loop's own thread, and its answer comes a little later. So statements of several
connections have one order, which follows from the seed.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
import sqlite3
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from random import Random
from typing import Any, Literal, TypeAlias
from unittest.mock import patch

import aiosqlite.core

_Statement: TypeAlias = tuple[asyncio.Future[Any] | None, Callable[[], Any]]
# `error`: nothing is read or written. `hang`: nothing is answered before the fault is over. `lost`: what is committed
# is stored, and the answer is an error.
DiskFault = Literal["error", "hang", "lost"]
# How long an answer takes, in seconds: mostly none, sometimes long enough for others to act.
_LATENCIES_S = (0.0, 0.0, 0.0, 0.001, 0.004, 0.02)
# Bytes show where they are in memory.
_ADDRESS = re.compile(" at 0x[0-9a-f]+")
_STATEMENTS = frozenset({"execute", "executemany"})
_WAITING = {"PRAGMA busy_timeout": "PRAGMA busy_timeout = 0", "PRAGMA synchronous": "PRAGMA synchronous = OFF"}
_REFUSED = _STATEMENTS | {"commit", "connector"}


def killed_connections_rest() -> AbstractContextManager[object]:
    """Let the driver say nothing about connections that a killed process has left. `Disk.kill` closes their files."""
    return patch.object(aiosqlite.core.Connection, "__del__", lambda _: None)


class _Connection:
    """Takes the place of a connection's queue of statements. `held`: those that the disk has not carried out."""

    def __init__(self, disk: Disk) -> None:
        self.held: deque[_Statement] = deque()
        self.raw: sqlite3.Connection | None = None
        self._disk = disk
        disk.connections.append(self)

    def put_nowait(self, statement: _Statement) -> None:
        """Carry a statement out."""
        self._disk.take(self, statement)


class Disk:
    """The disk as one process sees it. `fault`: what it does at present. `connections`: all that were opened."""

    def __init__(self, rng: Random) -> None:
        self.fault: DiskFault | None = None
        self.connections: list[_Connection] = []
        # Of all statements so far: what asks the database otherwise goes on otherwise, if later.
        self.asked = hashlib.sha256()
        self._rng = rng
        self._killed = False

    @contextmanager
    def mounted(self) -> Iterator[None]:
        """Let the driver's new connections use this disk."""
        with (
            patch.object(aiosqlite.core, "SimpleQueue", lambda: _Connection(self)),
            patch.object(aiosqlite.core, "Thread"),
        ):
            yield

    def mend(self) -> None:
        """End the fault, and carry out what was held."""
        self.fault = None
        for connection in self.connections:
            while connection.held:
                self._carry_out(connection, *connection.held.popleft())

    @property
    def open_connections(self) -> int:
        """Return how many connections have not been closed."""
        return sum(each.raw is not None and _is_open(each.raw) for each in self.connections)

    def kill(self) -> None:
        """Carry nothing out any more, as when the process is killed: what is not committed is rolled back."""
        self._killed = True
        for connection in self.connections:
            if connection.raw is not None:
                with suppress(sqlite3.Error):
                    connection.raw.rollback()
                connection.raw.close()
        self.mend()

    def take(self, connection: _Connection, statement: _Statement) -> None:
        """Carry a statement of a connection out, after those before it."""
        if self.fault == "hang" or connection.held:
            connection.held.append(statement)
        else:
            self._carry_out(connection, *statement)

    def _carry_out(self, connection: _Connection, future: asyncio.Future[Any] | None, work: Callable[[], Any]) -> None:
        name = str(getattr(getattr(work, "func", work), "__name__", ""))
        if name in _STATEMENTS:
            asked = _ADDRESS.sub("", str(getattr(work, "args", ())))
            self.asked.update(f"{self.connections.index(connection)} {asked}".encode())
        try:
            if name in _REFUSED and (self._killed or self.fault == "error"):
                raise sqlite3.OperationalError("disk I/O error")
            result = _without_wait(work)()
            if name == "commit" and self.fault == "lost":
                raise sqlite3.OperationalError("disk I/O error")
        except Exception as error:  # noqa: BLE001 - whoever awaits the future gets it
            result = error
        if isinstance(result, sqlite3.Connection):
            connection.raw = result
        if future is not None:
            future.get_loop().call_later(self._rng.choice(_LATENCIES_S), _answer, future, result)


def _is_open(raw: sqlite3.Connection) -> bool:
    try:
        return raw.total_changes >= 0
    except sqlite3.ProgrammingError:
        return False


def _without_wait(work: Callable[[], Any]) -> Callable[[], Any]:
    """Return the statement. One that lets SQLite wait for a lock or a disk lets it not: it would in real time."""
    asked = str(work.args[0]) if isinstance(work, partial) and work.args else ""
    for start, instead in _WAITING.items():
        if asked.startswith(start):
            return partial(work.func, instead)  # type: ignore[attr-defined]
    return work


def _answer(future: asyncio.Future[Any], result: object) -> None:
    if not future.done() and isinstance(result, Exception):
        future.set_exception(result)
    elif not future.done():
        future.set_result(result)
    elif isinstance(result, sqlite3.Connection):
        # Nobody waits for it any more, so the driver drops it.
        result.close()
