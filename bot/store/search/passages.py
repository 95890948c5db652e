"""Passages: what the search index has of turns, notes and segments.

They are written in the transaction that stores what they stand for; database triggers remove what is deleted or
forgotten. They are read with what they stand for: a turn and those around it, a note, or a segment.

A model writes 'Sami lives at Lindengasse 11' where Sami said 'Lindengasse, number eleven, second floor'. A question
about where Sami lives is like the first and has no word of the second. So the facts that a model wrote are found too,
and the turns that they cite are shown: a hit is always what was said. A fact in somebody's own words needs no passage
of its own: its turn has one.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from sqlalchemy import ColumnElement, and_, false, or_, select

from bot.store import rows
from bot.store.inserts import add_all_once, add_once, put_row
from bot.store.search.tags import ARCHIVED_TAG, FACT_KIND, FACT_TAG, passage_tags, tags_match
from bot.store.tables import corrections, notes, passages, segments, sessions, turns
from compaction.language.terms import name_terms, terms
from compaction.memory.passage import (
    Passage,
    PassageId,
    PassageKind,
    PassageSource,
    Readable,
    Scope,
    heard_during,
    source_kind,
    source_terms,
)
from compaction.model import Note, Segment, Seq, SessionId, Turn

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


async def index_source(connection: AsyncConnection, session_id: SessionId, source: PassageSource) -> None:
    """Index `source`, which is not indexed, inside the write transaction that stores it."""
    match source:
        case Turn():
            if not source.tombstone:
                place = await _place_of(connection, session_id)
                values = _values(session_id, source, place, str(source.seq), source.seq, source.started_at)
                await add_once(connection, passages, values)
        case Note():
            place = await _place_of(connection, session_id)
            await add_once(connection, passages, _values(session_id, source, place, source.id, None, source.at))
        case Segment():
            await index_segments_again(connection, session_id, [source])
            await _store_corrections(connection, session_id, source)


async def index_segments_again(connection: AsyncConnection, session_id: SessionId, made: Sequence[Segment]) -> None:
    """Index segments of one session in one statement, after the old text of each was removed.

    Their corrections are known already. Call it inside the write transaction that stores them.
    """
    place = await _place_of(connection, session_id)
    # In a thread: a long session has hundreds of segments.
    values = await asyncio.to_thread(
        lambda: [_values(session_id, each, place, each.id, each.start, each.started_at) for each in made],
    )
    if values:
        await add_all_once(connection, passages, values)
    for each in made:
        await _index_facts(connection, session_id, each)


async def _place_of(connection: AsyncConnection, session_id: SessionId) -> Any:
    of_session = select(sessions.c.guild_id, sessions.c.channel_id).where(sessions.c.id == session_id)
    return (await connection.execute(of_session)).one()


def _values(
    session_id: SessionId, source: PassageSource, place: Any, key: str, start: Seq | None, at: float
) -> dict[str, object]:
    heard_from, heard_until = heard_during(source)
    return {
        "session_id": session_id,
        "kind": source_kind(source).value,
        "key": key,
        "start_seq": start,
        "at": at,
        "heard_from": heard_from,
        "heard_until": heard_until,
        "own": " ".join(source_terms(source)),
        "tags": passage_tags(source, session_id, place.guild_id, place.channel_id),
    }


async def _index_facts(connection: AsyncConnection, session_id: SessionId, segment: Segment) -> None:
    """Index the facts of a segment that a model wrote, inside a write transaction. A turn must be indexed before.

    A fact has one passage for each turn that it cites, with the time and the tags of the turn, so that every filter
    judges it as it judges the turn. But somebody who may read only some of the cited turns may not read it.
    """
    written = [
        (f"{segment.id}#{index}.{seq}", seq, fact)
        for index, fact in enumerate(segment.facts if segment.is_by_model else ())
        if fact.text and fact.note_id is None
        for seq in fact.turns
    ]
    if not written:
        return
    cited = select(passages).where(
        passages.c.session_id == session_id,
        passages.c.kind == PassageKind.TURN.value,
        passages.c.start_seq.in_(sorted({seq for _, seq, _ in written})),
    )
    turns = {row.start_seq: row for row in await connection.execute(cited)}
    # A turn that was forgotten meanwhile takes its facts with it.
    written = [each for each in written if turns.keys() >= set(each[2].turns)]
    values: list[dict[str, object]] = [
        {
            "session_id": session_id,
            "kind": FACT_KIND,
            "key": key,
            "start_seq": seq,
            "at": turns[seq].at,
            "heard_from": min(turns[each].heard_from for each in fact.turns),
            "heard_until": max(turns[each].heard_until for each in fact.turns),
            "own": " ".join(dict.fromkeys((*name_terms(fact.speaker), *terms(fact.text)))),
            "tags": f"{turns[seq].tags} {FACT_TAG}",
        }
        for key, seq, fact in written
    ]
    if values:
        await add_all_once(connection, passages, values)


async def _store_corrections(connection: AsyncConnection, session_id: SessionId, segment: Segment) -> None:
    """Store which turn corrects which, from facts that close others."""
    replacing = {ref: fact for fact in segment.facts if fact.text and fact.note_id is None for ref in fact.closes}
    if not replacing:
        return
    names = sorted({ref.rpartition("#")[0] for ref in replacing})
    found = await connection.execute(
        select(segments).where(segments.c.session_id == session_id, segments.c.id.in_(names))
    )
    for row in found.all():
        for number, old in enumerate(rows.segment_from_row(row).facts):
            new = replacing.get(f"{row.id}#{number}")
            if new is not None and old.text:
                await _store_correction(connection, session_id, old.turns[-1], new.turns[-1])


async def _store_correction(connection: AsyncConnection, session_id: SessionId, old_seq: Seq, new_seq: Seq) -> None:
    """Store that a turn corrects an earlier one, unless a later turn is known to."""
    if old_seq < new_seq:
        key: dict[str, object] = {"session_id": session_id, "old_seq": old_seq}
        await put_row(connection, corrections, key, {"new_seq": new_seq}, where=corrections.c.new_seq < new_seq)
