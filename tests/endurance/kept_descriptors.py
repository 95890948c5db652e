"""Takes the descriptors of the database's file that SQLite keeps after a connection was closed.

While a process has another connection with a lock on the file, SQLite cannot close the file: the system would drop all
locks of the process. It keeps the descriptor for the next connection. When a read is cancelled its connection is
replaced, now and then before it is closed, so that one descriptor more is kept: the number grows to that of all
connections that have ever been open at once, perhaps after an hour.
"""

from __future__ import annotations

import sqlite3
from contextlib import ExitStack, closing
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

# The bot has six connections, four of which are replaced when what they do is cancelled. Twelve were seen on a machine
# with several times the work that it could do.
MOST_CONNECTIONS: Final = 12


def keep_descriptors(file: Path, count: int = MOST_CONNECTIONS) -> None:
    """Open `count` connections to the database at once and close them. Another one of this process must be open."""
    with ExitStack() as stack:
        for _ in range(count):
            connection = stack.enter_context(closing(sqlite3.connect(file)))
            # Opens the file.
            connection.execute("SELECT 1 FROM sqlite_master").fetchall()
