"""Removes the bytes of deleted text from the search index and from the database's files.

The database is written anew for that. Meanwhile every writer waits, on PostgreSQL every reader too: half a minute for a
gigabyte. Anybody may have something of theirs deleted, so it is done once in `WIPE_PAUSE_S` for all together. What is
deleted is marked in the same transaction. The mark outlives the process: `bot.memory.indexer` wipes later what had to
wait, and `bot.memory.retention` wipes once a day in any case.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from sqlalchemy import case

from bot.store.claims import lock_server
from bot.store.dialects.upsert import insert_into
from bot.store.inserts import put_row
from bot.store.search.marks import read_marks
from bot.store.search.vector_store import VectorStore
from bot.store.tables import search_marks

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sqlalchemy.ext.asyncio import AsyncConnection

    from bot.store.database import Database

# Writers of a database of a gigabyte wait for 3 % of the time then, however many people have something deleted.
WIPE_PAUSE_S = 900.0
# The pause after a wipe that failed. One fails for long, and each holds writers up: a full disk, a database too large
# for `Database.wipe`. So after the second one in a row the next is left to retention.
FAILED_PAUSE_S = 3600.0
_MOST_FAILED = 2
# The names of the marks. When something was last deleted, in milliseconds: a number that rises each time. Up to which
# of these numbers all is wiped. When the last wipe on request began, in seconds. How many on request have begun since
# one succeeded.
_DELETED, _WIPED, _BEGUN, _TRIES = "deleted", "wiped", "wipe_begun", "wipe_tries"


async def mark_deleted(connection: AsyncConnection, *, now: float) -> None:
    """Note, inside the write transaction that deletes something, that its bytes are to be wiped."""
    row = insert_into(connection, search_marks).values(name=_DELETED, value=int(now * 1000))
    stored = search_marks.c.value
    later = case((stored < row.excluded.value, row.excluded.value), else_=stored + 1)
    await connection.execute(row.on_conflict_do_update(index_elements=["name"], set_={"value": later}))


async def wipe_deleted(database: Database) -> bool:
    """Remove the bytes of everything that was deleted. Raises `StoreError`.

    Returns False if another connection was reading all the time, so that there may still be deleted text.
    """
    async with database.reading() as connection:
        marks = await read_marks(connection)
    await VectorStore(database).purge()
    return await _write_anew(database, marks[_DELETED])


async def wipe_if_due(database: Database, *, now: float, pause_s: float = WIPE_PAUSE_S, settled_s: float = 0.0) -> bool:
    """Wipe if something was deleted since the last wipe, and that began `pause_s` ago. Raises `StoreError`.

    After a wipe that failed the pause is `FAILED_PAUSE_S`. `pause_s` 0: wait for none. `settled_s`: wait until nothing
    was deleted for so long. Returns whether no byte of what was deleted is left; False: call it again later.
    """
    async with database.reading() as connection:
        # Before the purge, which misses what somebody deletes meanwhile.
        marks = await read_marks(connection)
    deleted = marks[_DELETED]
    if deleted <= marks[_WIPED]:
        return True
    if _has_to_wait(marks, now, pause_s, settled_s):
        return False
    await VectorStore(database).purge()
    async with database.writing() as connection:
        await lock_server(connection, None)
        # Another process may have begun meanwhile. From here on a failure has to wait too: it may take minutes.
        marks = await read_marks(connection)
        if _has_to_wait(marks, now, pause_s, settled_s):
            return False
        await put_row(connection, search_marks, {"name": _BEGUN}, {"value": int(now)})
        await put_row(connection, search_marks, {"name": _TRIES}, {"value": marks[_TRIES] + 1})
    return await _write_anew(database, deleted)


async def _write_anew(database: Database, deleted: int) -> bool:
    wiped = await database.wipe()
    if wiped and deleted:
        async with database.writing() as connection:
            await put_row(connection, search_marks, {"name": _WIPED}, {"value": deleted})
            await put_row(connection, search_marks, {"name": _TRIES}, {"value": 0})
    return wiped


def _has_to_wait(marks: Mapping[str, int], now: float, pause_s: float, settled_s: float) -> bool:
    failed = marks[_TRIES]
    if failed and pause_s:
        pause_s = FAILED_PAUSE_S if failed < _MOST_FAILED else inf
    return _is_within(pause_s, marks[_BEGUN], now) or _is_within(settled_s, marks[_DELETED] / 1000, now)


def _is_within(seconds: float, at: float, now: float) -> bool:
    # A time that is still to come is one of before the clock was set back.
    return 0 <= now - at < seconds
