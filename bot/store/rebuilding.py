"""Takes what was made of forgotten turns and notes out of a session's segments, by their numbers and ids.

`compaction.memory.segment_forgetting` decides what goes. The next fold of an open session writes the summary anew.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

from sqlalchemy import bindparam, select, update

from bot.store import rows
from bot.store.history import segments_of
from bot.store.inserts import execute_for_each
from bot.store.search.indexing import index_segments_again
from bot.store.tables import segment_tiers, segments
from bot.store.tier_rows import drop_record
from bot.store.tiers import mark_archived
from compaction.memory.segment_forgetting import forget_in_segment

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from sqlalchemy.ext.asyncio import AsyncConnection

    from compaction.model import Segment, Seq, SessionId

# The columns of a segment that are made anew.
_REMADE = ("facts", "gist", "note_ids", "created_at", "paragraph")


async def forget_in_segments(
    connection: AsyncConnection, session_id: SessionId, *, seqs: frozenset[Seq], gone_notes: frozenset[str], now: float
) -> frozenset[str]:
    """Take out what was made of these turns and notes, inside a write transaction. Returns the refs of lost facts.

    `now`: UTC epoch seconds.

    The records of changed segments go too; they are made again when they are next asked for.
    """
    before = await segments_of(connection, session_id)
    # In a thread: a long session has a thousand.
    after = await asyncio.to_thread(lambda: [forget_in_segment(each, seqs, gone_notes)[0] for each in before])
    changed = [replace(made, created_at=now) for old, made in zip(before, after, strict=True) if made != old]
    await _store(connection, session_id, changed)
    await _drop_records(connection, session_id, {each.id for each in changed})
    return frozenset(
        f"{old.id}#{index}"
        for old, made in zip(before, after, strict=True)
        for index, (was, left) in enumerate(zip(old.facts, made.facts, strict=True))
        if was.text and not left.text
    )


async def _store(connection: AsyncConnection, session_id: SessionId, made: Sequence[Segment]) -> None:
    """Store and index the segments, with few statements: a long session has a thousand, and turns wait meanwhile."""
    same = (segments.c.session_id == session_id) & (segments.c.id == bindparam("named"))
    values = await asyncio.to_thread(lambda: [rows.segment_values(session_id, each) for each in made])
    columns: dict[str, object] = {key: bindparam(f"new_{key}") for key in _REMADE}
    await execute_for_each(
        connection,
        update(segments).where(same).values(columns),
        [{"named": each["id"]} | {f"new_{key}": each[key] for key in _REMADE} for each in values],
    )
    # Triggers have removed the old text from the index.
    await index_segments_again(connection, session_id, made)


async def _drop_records(connection: AsyncConnection, session_id: SessionId, ids: Collection[str]) -> None:
    of_session = select(segment_tiers).where(segment_tiers.c.session_id == session_id)
    for row in (await connection.execute(of_session)).all():
        if row.segment_id not in ids:
            continue
        await drop_record(connection, session_id, row.segment_id)
        if row.archived_at is not None:
            await mark_archived(connection, session_id, row.segment_id)
