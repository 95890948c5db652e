"""What was decided since a backup, in the present database or before it in the backup, holds after the merge."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from bot.store.database import open_database
from bot.store.restore_merge import MergedSessions, merge_newer_decisions

if TYPE_CHECKING:
    from pathlib import Path

# By table: the columns, the rows of the backup, those of the present database, and those of the merged one. Both
# databases have the session `both`; `old` is in the backup alone, `new` at present alone.
TABLES: dict[str, tuple[str, list[tuple[object, ...]], list[tuple[object, ...]], list[tuple[object, ...]]]] = {
    "forgotten_sessions": (
        "digest, from_seq, at",
        [("a", 5, 100.0), ("b", 2, 300.0), ("c", 1, 1.0)],
        [("a", 2, 300.0), ("b", 5, 100.0), ("d", 1, 1.0)],
        [("a", 2, 300.0), ("b", 2, 300.0), ("c", 1, 1.0), ("d", 1, 1.0)],
    ),
    "forgotten_runs": ("digest", [("a",), ("b",)], [("b",), ("c",)], [("a",), ("b",), ("c",)]),
    "person_forgets": (
        "session_id, person_id, through_seq",
        [("both", "1", 5), ("both", "2", 9), ("old", "1", 3)],
        [("both", "1", 9), ("both", "2", 5), ("both", "3", 1), ("new", "1", 7)],
        [("both", "1", 9), ("both", "2", 9), ("both", "3", 1), ("old", "1", 3)],
    ),
    "sent_texts": (
        "session_id, digest, text",
        [("both", "a", "A"), ("both", "b", "B"), ("old", "b", "B")],
        [("both", "a", "A"), ("new", "b", "B")],
        [("both", "a", "A"), ("old", "b", "B")],
    ),
    "room_claims": ("guild_id, number", [(1, 5), (2, 2)], [(1, 3), (2, 4), (3, 1)], [(1, 5), (2, 4), (3, 1)]),
    "server_settings": (
        "guild_id, choices, changed_at",
        [(1, "{}", 1.0), (2, "{}", 1.0)],
        [(1, '{"a": 1}', 2.0)],
        [(1, '{"a": 1}', 2.0), (2, "{}", 1.0)],
    ),
    "guild_settings": (
        "guild_id, budget_enabled, changed_at",
        [(1, 0, 1.0), (2, 0, 1.0)],
        [(1, 1, 2.0)],
        [(1, 1, 2.0), (2, 0, 1.0)],
    ),
}


@pytest.mark.asyncio
async def test_the_stricter_and_the_later_of_both_hold(tmp_path: Path) -> None:
    """In whichever of the databases it stands. No session is taken over: none of those forgotten is there."""
    restored, present = tmp_path / "restored.db", tmp_path / "present.db"
    for path, own, which in ((restored, "old", 0), (present, "new", 1)):
        async with open_database(path):
            pass
        with closing(sqlite3.connect(path)) as connection, connection:
            for name in ("both", own):
                connection.execute("INSERT INTO sessions (id, started_at) VALUES (?, 0.0)", (name,))
            for table, (columns, *filled) in TABLES.items():
                marks = ", ".join("?" * len(columns.split(",")))
                connection.executemany(
                    f"INSERT INTO {table} ({columns}) VALUES ({marks})",
                    filled[which],
                )
    assert merge_newer_decisions(restored, present) == MergedSessions()
    with closing(sqlite3.connect(restored)) as connection:
        for table, (columns, _, _, merged) in TABLES.items():
            found = connection.execute(f"SELECT {columns} FROM {table}").fetchall()
            assert sorted(found) == merged, table
