"""Reads passages with what they stand for: a turn and those around it, a note, or a segment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import and_, false, or_, select

from bot.store import rows
from bot.store.search.tags import ARCHIVED_TAG, FACT_KIND
from bot.store.tables import corrections, notes, passages, segments, turns
from compaction.memory.passage import Passage, PassageId, PassageKind, PassageSource
from compaction.model import Seq, SessionId, Turn

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from sqlalchemy import ColumnElement
    from sqlalchemy.ext.asyncio import AsyncConnection

# Turns read around a found turn: one before it, and a few after it in which it may be corrected.
_BEFORE, _AFTER = 1, 3
# A session and a seq or an id in it.
_Key = tuple[str, Any]


async def read_passages(connection: AsyncConnection, ids: Sequence[PassageId]) -> tuple[Passage, ...]:
    """Return these passages in this order; deleted ones are missing. A turn has the terms of the facts that cite it."""
    if not ids:
        return ()
    corrected = and_(
        passages.c.kind == PassageKind.TURN.value,
        corrections.c.session_id == passages.c.session_id,
        corrections.c.old_seq == passages.c.start_seq,
    )
    wanted = select(passages, corrections.c.new_seq).outerjoin(corrections, corrected).where(passages.c.id.in_(ids))
    found = (await connection.execute(wanted)).all()
    turn_keys = [(row.session_id, row.start_seq) for row in found if row.kind == PassageKind.TURN]
    around = await _turns_around(connection, turn_keys)
    fact_terms = await _terms_of_facts(connection, turn_keys)
    sources: dict[tuple[str, _Key], PassageSource] = {(PassageKind.TURN.value, key): around[key] for key in around}
    for kind, table, read in (
        (PassageKind.NOTE, notes, rows.note_from_row),
        (PassageKind.SEGMENT, segments, rows.segment_from_row),
    ):
        keys = [(row.session_id, row.key) for row in found if row.kind == kind]
        for stored in await connection.execute(select(table).where(_has_key(table.c.session_id, table.c.id, keys))):
            sources[kind.value, (stored.session_id, stored.id)] = read(stored)
    by_id = {row.id: made for row in found if (made := _passage(row, sources, around, fact_terms)) is not None}
    return tuple(by_id[each] for each in dict.fromkeys(ids) if each in by_id)


async def _turns_around(connection: AsyncConnection, found: Sequence[_Key]) -> dict[_Key, Turn]:
    """Return the found turns and those around them, by session and seq."""
    near = {(session_id, seq + step) for session_id, seq in found for step in range(-_BEFORE, _AFTER + 1)}
    stored = await connection.execute(select(turns).where(_has_key(turns.c.session_id, turns.c.seq, near)))
    return {(row.session_id, row.seq): rows.turn_from_row(row) for row in stored}


def _passage(
    row: Any,
    sources: Mapping[tuple[str, _Key], PassageSource],
    around: Mapping[_Key, Turn],
    fact_terms: Mapping[_Key, frozenset[str]],
) -> Passage | None:
    is_turn = row.kind == PassageKind.TURN
    key = (row.session_id, row.start_seq if is_turn else row.key)
    source = sources.get((row.kind, key))
    if source is None or (isinstance(source, Turn) and source.tombstone):
        return None
    near: list[Turn | None] = []
    own = frozenset(row.own.split())
    if is_turn:
        own |= fact_terms.get(key, frozenset())
        near = [around.get((row.session_id, row.start_seq + step)) for step in range(-_BEFORE, _AFTER + 1)]
    return Passage(
        id=PassageId(row.id),
        session_id=SessionId(row.session_id),
        source=source,
        own_terms=own,
        nearby_terms=frozenset(row.preceding.split()) | frozenset(row.following.split()),
        around=tuple(turn for turn in near if turn is not None),
        replaced_by=None if row.new_seq is None else Seq(row.new_seq),
        archived=ARCHIVED_TAG in row.tags,
    )


async def _terms_of_facts(
    connection: AsyncConnection, turns: Sequence[tuple[str, int]]
) -> dict[tuple[str, int], frozenset[str]]:
    """Return the search terms of the facts that cite these turns, by session and seq."""
    citing = _has_key(passages.c.session_id, passages.c.start_seq, turns) & (passages.c.kind == FACT_KIND)
    wanted = select(passages.c.session_id, passages.c.start_seq, passages.c.own).where(citing)
    found: dict[tuple[str, int], frozenset[str]] = {}
    for row in await connection.execute(wanted):
        key = (row.session_id, row.start_seq)
        found[key] = found.get(key, frozenset()) | frozenset(row.own.split())
    return found


def _has_key(session_id: ColumnElement[str], key: ColumnElement[Any], keys: Iterable[_Key]) -> ColumnElement[bool]:
    """Return whether a row has one of these keys. For pairs of values SQLite uses no index and reads the table."""
    by_session: dict[str, list[Any]] = {}
    for session, wanted in keys:
        by_session.setdefault(session, []).append(wanted)
    return or_(false(), *(and_(session_id == session, key.in_(wanted)) for session, wanted in by_session.items()))
