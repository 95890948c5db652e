"""Writes the search index: turns, notes and segments become passages in the transaction that stores them.

`search` reads the index. Database triggers remove what is deleted or forgotten.

A model writes 'Sami lives at Lindengasse 11' where Sami said 'Lindengasse, number eleven, second floor'. A question
about where Sami lives is like the first and has no word of the second. So the facts that a model wrote are found too,
and the turns that they cite are shown: a hit is always what was said. A fact in somebody's own words needs no passage
of its own: its turn has one.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from sqlalchemy import select

from bot.store import rows
from bot.store.inserts import add_all_once, add_once, put_row
from bot.store.search.tags import FACT_KIND, FACT_TAG, passage_tags
from bot.store.tables import corrections, passages, segments, sessions
from compaction.language.terms import name_terms, terms
from compaction.memory.passage import PassageKind, PassageSource, heard_during, source_kind, source_terms
from compaction.model import Note, Segment, Seq, SessionId, Turn

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy.ext.asyncio import AsyncConnection


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
