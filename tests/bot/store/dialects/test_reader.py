"""The reader has its own threads, each with one connection. It cannot write, and a cancelled read runs to its end."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING

import pytest

from bot.store.dialects.reader import THREADS, ThreadedReader
from bot.store.dialects.sqlite import open_plain
from tests.patience import PATIENCE_S

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A database with one row."""
    made = tmp_path / "a.db"
    with closing(sqlite3.connect(made)) as connection, connection:
        connection.execute("CREATE TABLE words (word TEXT)")
        connection.execute("INSERT INTO words VALUES ('lighthouse')")
    return made


@pytest.mark.asyncio
async def test_it_reads_in_another_thread_and_keeps_its_connections(path: Path) -> None:
    """Reads run in the reader's threads, on no more connections than there are threads."""
    reader = ThreadedReader(partial(open_plain, path, busy_timeout_s=1.0))
    seen: set[tuple[int, str]] = set()

    def look(connection: sqlite3.Connection) -> str:
        seen.add((id(connection), threading.current_thread().name))
        (count,) = connection.execute("SELECT count(*) FROM words").fetchone()
        (word,) = connection.execute("SELECT word FROM words").fetchone()
        return f"{count} {word}"

    found = await asyncio.gather(*(reader.read(look) for _ in range(20)))
    assert set(found) == {"1 lighthouse"}
    assert 1 <= len(seen) <= THREADS
    assert all(name.startswith("store-reader") for _, name in seen)
    await reader.aclose()


@pytest.mark.asyncio
async def test_it_can_not_write(path: Path) -> None:
    """A read-only connection refuses every write and can still be read afterwards."""
    reader = ThreadedReader(partial(open_plain, path, busy_timeout_s=1.0))
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        await reader.read(lambda connection: connection.execute("DELETE FROM words"))
    assert await reader.read(lambda connection: connection.execute("SELECT word FROM words").fetchall()) == [
        ("lighthouse",)
    ]
    await reader.aclose()


@pytest.mark.asyncio
async def test_what_is_cancelled_is_read_to_its_end(path: Path) -> None:
    """A cancelled read runs to its end, after which its thread is free for other reads."""
    reader = ThreadedReader(partial(open_plain, path, busy_timeout_s=1.0))
    begun, go_on = threading.Event(), threading.Event()

    def look(connection: sqlite3.Connection) -> object:
        begun.set()
        go_on.wait(PATIENCE_S)
        return connection.execute("SELECT word FROM words").fetchone()

    task = asyncio.create_task(reader.read(look))
    await asyncio.to_thread(begun.wait, PATIENCE_S)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    go_on.set()
    assert await reader.read(lambda connection: connection.execute("SELECT 1").fetchone()) == (1,)
    await reader.aclose()
