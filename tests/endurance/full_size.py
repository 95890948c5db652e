"""Brings what grows once to its final size before a bot is sampled: later it would look like growth."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import sys
import threading
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Final

# A thread that does not start within this time is not allowed to.
_START_S = 60.0
# More than the free places of Python's dictionary of interned strings with 170,000 entries; a bot's has 60,000. Names
# that are looked up are entered and taken out, and a place is not used again before the dictionary is copied into a
# larger one. In a live room that was after 42 minutes, and took 1.9 MB more.
_INTERNED: Final = 400_000
# SQLite keeps the descriptor of a connection that is closed while another one has a lock on the file. The bot has six
# connections, four of which are replaced when what they do is cancelled.
_CONNECTIONS: Final = 12


async def bring_to_full_size(database: Path) -> None:
    """Start all threads of the event loop's pool, fill Python's dictionary of interned strings, and let SQLite keep the
    descriptors that it will keep of `database`, to which the process must have a connection.
    """
    # As `concurrent.futures.ThreadPoolExecutor` counts them.
    count = min(32, (os.cpu_count() or 1) + 4)
    everybody = threading.Barrier(count)
    await asyncio.gather(*(asyncio.to_thread(everybody.wait, _START_S) for _ in range(count)))
    await asyncio.to_thread(_fill_interned_strings)
    await asyncio.to_thread(_keep_descriptors, database)


def _fill_interned_strings() -> None:
    for number in range(_INTERNED):
        sys.intern(f"held by nobody {number}")


def _keep_descriptors(database: Path) -> None:
    with ExitStack() as stack:
        for _ in range(_CONNECTIONS):
            connection = stack.enter_context(closing(sqlite3.connect(database)))
            # Opens the file.
            connection.execute("SELECT 1 FROM sqlite_master").fetchall()
