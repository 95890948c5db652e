"""The list of what was forgotten, as hashes, so that an import of an older export does not bring it back.

The words cannot be read from the hashes. Whoever has the database can test whether a certain phrase is among them.
"""

from __future__ import annotations

import asyncio
import hashlib
from typing import TYPE_CHECKING

from sqlalchemy import case, func, select

from bot.store.dialects.upsert import insert_into
from bot.store.inserts import add_all_once
from bot.store.tables import forgotten_runs, forgotten_sessions
from compaction.memory.quotations import is_quotation, runs_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from sqlalchemy.ext.asyncio import AsyncConnection

    from bot.store.database import Database
    from compaction.memory.quotations import Run, Runs
    from compaction.memory.segment_record import SegmentRecord
    from compaction.model import SessionId

# Values in one statement: fewer than SQLite's limit for parameters.
_BATCH = 500
# Hashes in one transaction: others write in between, and none takes so long that the database ends it.
_LISTED_AT_ONCE = 5_000
# What a session was not changed from: no import is refused because of it.
NOTHING_MADE = 2**31


async def list_session(connection: AsyncConnection, session_id: SessionId, *, from_seq: int, at: float) -> None:
    """Note that what was made of a session's turns from `from_seq` on, before `at`, was forgotten.

    Call it inside a write transaction. The time of a session rises with each call, also if the clock was set back: open
    rooms and restored backups learn from it that more was forgotten.
    """
    digest = session_digest(session_id)
    row = insert_into(connection, forgotten_sessions).values(digest=digest, from_seq=from_seq, at=at)
    stored = forgotten_sessions.c
    earlier = case((stored.from_seq < row.excluded.from_seq, stored.from_seq), else_=row.excluded.from_seq)
    later = case((stored.at < row.excluded.at, row.excluded.at), else_=stored.at + 1)
    await connection.execute(
        row.on_conflict_do_update(index_elements=["digest"], set_={"from_seq": earlier, "at": later})
    )


async def listed_at(connection: AsyncConnection, session_id: SessionId) -> float | None:
    """Return the time of the last `list_session` of a session; None: there was none."""
    listed = select(forgotten_sessions.c.at).where(forgotten_sessions.c.digest == session_digest(session_id))
    at: float | None = await connection.scalar(listed)
    return at


async def list_words(database: Database, runs: Runs) -> None:
    """Note word sequences of the forgotten text, in as many write transactions as that takes. Raises `StoreError`."""
    # In a thread, and before the transactions: somebody who has spoken for months has hundreds of thousands.
    digests = await asyncio.to_thread(lambda: sorted(_digests(runs.runs)))
    for start in range(0, len(digests), _LISTED_AT_ONCE):
        values: list[dict[str, object]] = [{"digest": each} for each in digests[start : start + _LISTED_AT_ONCE]]
        async with database.writing() as connection:
            await add_all_once(connection, forgotten_runs, values)


async def is_forgotten(connection: AsyncConnection, record: SegmentRecord, paragraph: str) -> bool:
    """Return whether a record has forgotten words, or was made of turns from which something was forgotten later."""
    of_session = select(forgotten_sessions).where(forgotten_sessions.c.digest == session_digest(record.session_id))
    listed = (await connection.execute(of_session)).one_or_none()
    if listed is not None and record.end_turn >= listed.from_seq and record.compressed_at < listed.at:
        return True
    texts = (record.compressed_content, record.topic, paragraph, *record.key_decisions, *record.key_files)
    digests = sorted(_digests(runs_of(texts).runs))
    for start in range(0, len(digests), _BATCH):
        among = forgotten_runs.c.digest.in_(digests[start : start + _BATCH])
        if await connection.scalar(select(func.count()).select_from(forgotten_runs).where(among)):
            return True
    return False


def session_digest(session_id: str) -> str:
    """Return what stands on the list for a session."""
    return digest_of(session_id)


def _digests(runs: Iterable[Run]) -> Collection[str]:
    # Others ('Yes please') are common.
    return {digest_of(" ".join(run)) for run in runs if is_quotation(run)}


def digest_of(text: str) -> str:
    """Return what stands for a text where the text itself must not stand."""
    return hashlib.blake2s(text.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()
