"""Damage to a database file."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path


def damage(path: Path) -> None:
    """Overwrite the root page of the turns."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
        page_bytes = connection.execute("PRAGMA page_size").fetchone()[0]
        root = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'turns'").fetchone()[0]
    with path.open("r+b") as file:
        file.seek(page_bytes * (root - 1))
        file.write(b"\xff" * page_bytes)
