"""Reads passages with what they stand for: a turn and those around it, a note, or a segment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import ColumnElement, and_, false, or_, select

from bot.store import rows
from bot.store.search.tags import ARCHIVED_TAG, FACT_KIND, tags_match
from bot.store.tables import corrections, notes, passages, segments, turns
from compaction.memory.passage import Passage, PassageId, PassageKind, PassageSource, Readable, Scope
from compaction.model import Seq, SessionId, Turn

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from sqlalchemy.ext.asyncio import AsyncConnection


# Turns read around a found turn: one before it, and two after it in which it may be corrected. With more, replies quote
# the same, and a third of a search is reading them.
_BEFORE, _AFTER = 1, 2
_COLUMNS = ("session_id", "kind", "start_seq", "heard_from", "heard_until", "own", "tags")
# A session and a seq or an id in it.
_Key = tuple[str, Any]


async def read_passages(
    connection: AsyncConnection, ids: Sequence[PassageId], readable: Readable
) -> tuple[Passage, ...]:
    """Return these passages in this order; those that are deleted or may not be read are missing. A turn has the terms
    of the facts that cite it, and around it are turns that may be read.
    """
    if not ids:
        return ()
    corrected = and_(
        passages.c.kind == PassageKind.TURN.value,
        corrections.c.session_id == passages.c.session_id,
        corrections.c.old_seq == passages.c.start_seq,
    )
    chosen = select(passages, corrections.c.new_seq).outerjoin(corrections, corrected).where(passages.c.id.in_(ids))
    found = [row for row in (await connection.execute(chosen)).all() if _may_read(readable, row)]
    near = dict.fromkeys(
        (row.session_id, seq)
        for row in found
        if row.kind == PassageKind.TURN
        for seq in (*range(row.start_seq - _BEFORE, row.start_seq + _AFTER + 1), row.new_seq)
        if seq is not None
    )
    terms, fact_terms = await _terms_of_turns(connection, near, readable)
    sources: dict[tuple[str, _Key], PassageSource] = {}
    for kind, table, key, read, keys in (
        (PassageKind.TURN, turns, "seq", rows.turn_from_row, terms),
        (PassageKind.NOTE, notes, "id", rows.note_from_row, _keys_of(found, PassageKind.NOTE)),
        (PassageKind.SEGMENT, segments, "id", rows.segment_from_row, _keys_of(found, PassageKind.SEGMENT)),
    ):
        wanted = select(table).where(_has_key(table.c.session_id, table.c[key], keys))
        for stored in await connection.execute(wanted) if keys else ():
            sources[kind.value, (stored.session_id, getattr(stored, key))] = read(stored)
    by_id = {row.id: made for row in found if (made := _passage(row, sources, terms, fact_terms)) is not None}
    return tuple(by_id[each] for each in dict.fromkeys(ids) if each in by_id)


def _may_read(readable: Readable, row: Any) -> bool:
    if not readable.covers(row.session_id, row.heard_from, row.heard_until):
        return False
    return not readable.withheld or tags_match(Scope(readable=readable), frozenset(row.tags.split()))


def _keys_of(found: Sequence[Any], kind: PassageKind) -> list[_Key]:
    return [(row.session_id, row.key) for row in found if row.kind == kind]


def _passage(
    row: Any,
    sources: Mapping[tuple[str, _Key], PassageSource],
    terms: Mapping[_Key, str],
    fact_terms: Mapping[_Key, str],
) -> Passage | None:
    is_turn = row.kind == PassageKind.TURN
    source = sources.get((row.kind, (row.session_id, row.start_seq if is_turn else row.key)))
    if source is None:
        return None
    around: list[Turn] = []
    own, nearby = row.own, ""
    if is_turn:
        own += fact_terms.get((row.session_id, row.start_seq), "")
        for step in range(-_BEFORE, _AFTER + 1):
            key = (row.session_id, row.start_seq + step)
            if isinstance(turn := sources.get((row.kind, key)), Turn):
                around.append(turn)
                nearby += terms[key] if abs(step) == 1 else ""
    return Passage(
        id=PassageId(row.id),
        session_id=SessionId(row.session_id),
        source=source,
        own_terms=frozenset(own.split()),
        nearby_terms=frozenset(nearby.split()),
        around=tuple(around),
        # Nobody learns that there is a correction that they may not read.
        replaced_by=Seq(row.new_seq) if (row.session_id, row.new_seq) in terms else None,
        archived=ARCHIVED_TAG in row.tags,
    )


async def _terms_of_turns(
    connection: AsyncConnection, keys: Iterable[_Key], readable: Readable
) -> tuple[dict[_Key, str], dict[_Key, str]]:
    """Return the terms of these turns and of the facts that cite them, of what may be read, by session and seq."""
    found: dict[str, dict[_Key, str]] = {PassageKind.TURN.value: {}, FACT_KIND: {}}
    # With a condition for the kind, SQLite would read all passages of that kind.
    columns = [passages.c[each] for each in _COLUMNS]
    wanted = select(*columns).where(_has_key(passages.c.session_id, passages.c.start_seq, keys))
    for row in await connection.execute(wanted):
        if row.kind in found and _may_read(readable, row):
            terms, key = found[row.kind], (row.session_id, row.start_seq)
            terms[key] = f"{terms.get(key, '')} {row.own}"
    return found[PassageKind.TURN.value], found[FACT_KIND]


def _has_key(session_id: ColumnElement[str], key: ColumnElement[Any], keys: Iterable[_Key]) -> ColumnElement[bool]:
    """Return whether a row has one of these keys. For pairs of values SQLite uses no index and reads the table."""
    by_session: dict[str, list[Any]] = {}
    for session, wanted in keys:
        by_session.setdefault(session, []).append(wanted)
    return or_(false(), *(and_(session_id == session, key.in_(wanted)) for session, wanted in by_session.items()))
