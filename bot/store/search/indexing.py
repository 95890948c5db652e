"""Writes the search index: turns, notes and segments become passages in the transaction that stores them.

`search` reads the index. Database triggers remove what is deleted or forgotten.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from sqlalchemy import and_, select, update

from bot.store import rows
from bot.store.inserts import add_all_once, add_once
from bot.store.search.fact_passages import index_facts
from bot.store.search.tags import passage_tags
from bot.store.tables import corrections, passages, segments, sessions
from compaction.memory.passage import PassageKind, source_kind, source_terms
from compaction.model import FactKind, Note, Segment, Seq, SessionId, Turn

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy.ext.asyncio import AsyncConnection

    from compaction.memory.passage import PassageSource

# Facts whose closing says that they are so no longer.
_CORRECTED = frozenset({FactKind.LASTING, FactKind.DECISION, FactKind.OTHER})


async def index_source(connection: AsyncConnection, session_id: SessionId, source: PassageSource) -> None:
    """Index `source` inside the write transaction that stores it, unless it is indexed already."""
    match source:
        case Turn():
            await _index_turn(connection, session_id, source)
        case Note():
            await _add(connection, session_id, source, key=source.id, start=None, at=source.at)
        case Segment():
            await _add(connection, session_id, source, key=source.id, start=source.start, at=source.started_at)
            await index_facts(connection, session_id, source)
            await _store_corrections(connection, session_id, source)


async def index_segments_again(connection: AsyncConnection, session_id: SessionId, made: Sequence[Segment]) -> None:
    """Index segments of one session in one statement, after the old text of each was removed.

    Their corrections are known already. Call it inside the write transaction that stores them.
    """
    place = await _place_of(connection, session_id)
    # In a thread: a long session has hundreds of segments.
    values = await asyncio.to_thread(
        lambda: [_values(session_id, each, place, key=each.id, start=each.start, at=each.started_at) for each in made],
    )
    if values:
        await add_all_once(connection, passages, values)
    for each in made:
        await index_facts(connection, session_id, each)


async def _index_turn(connection: AsyncConnection, session_id: SessionId, turn: Turn) -> None:
    """Index a turn together with its neighbours' terms, and add its terms to theirs."""
    if turn.tombstone:
        return
    beside = and_(
        passages.c.session_id == session_id,
        passages.c.kind == PassageKind.TURN.value,
        passages.c.start_seq.in_((turn.seq - 1, turn.seq + 1)),
    )
    own = _terms_text(turn)
    around = {row.start_seq: row for row in await connection.execute(select(passages).where(beside))}
    before, after = around.get(turn.seq - 1), around.get(turn.seq + 1)
    added = await _add(
        connection,
        session_id,
        turn,
        key=str(turn.seq),
        start=turn.seq,
        at=turn.started_at,
        own=own,
        preceding="" if before is None else before.own,
        following="" if after is None else after.own,
    )
    if not added:
        return
    if before is not None:
        await connection.execute(update(passages).where(passages.c.id == before.id).values(following=own))
    if after is not None:
        await connection.execute(update(passages).where(passages.c.id == after.id).values(preceding=own))


async def _add(
    connection: AsyncConnection,
    session_id: SessionId,
    source: PassageSource,
    *,
    key: str,
    start: Seq | None,
    at: float,
    own: str | None = None,
    preceding: str = "",
    following: str = "",
) -> bool:
    place = await _place_of(connection, session_id)
    values = _values(
        session_id, source, place, key=key, start=start, at=at, own=own, preceding=preceding, following=following
    )
    return await add_once(connection, passages, values)


async def _place_of(connection: AsyncConnection, session_id: SessionId) -> Any:
    of_session = select(sessions.c.guild_id, sessions.c.channel_id).where(sessions.c.id == session_id)
    return (await connection.execute(of_session)).one()


def _values(
    session_id: SessionId,
    source: PassageSource,
    place: Any,
    *,
    key: str,
    start: Seq | None,
    at: float,
    own: str | None = None,
    preceding: str = "",
    following: str = "",
) -> dict[str, object]:
    return {
        "session_id": session_id,
        "kind": source_kind(source).value,
        "key": key,
        "start_seq": start,
        "at": at,
        "own": _terms_text(source) if own is None else own,
        "preceding": preceding,
        "following": following,
        "tags": passage_tags(source, session_id, place.guild_id, place.channel_id),
    }


def _terms_text(source: PassageSource) -> str:
    return " ".join(source_terms(source))


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
            # What is done or answered was not wrong; what was lasting or decided is so no longer.
            if new is not None and old.text and old.kind in _CORRECTED:
                await _store_correction(connection, session_id, old.turns[-1], new.turns[-1])


async def _store_correction(connection: AsyncConnection, session_id: SessionId, old_seq: Seq, new_seq: Seq) -> None:
    """Store that a turn corrects an earlier one, unless a later turn is known to."""
    if old_seq >= new_seq:
        return
    values: dict[str, object] = {"session_id": session_id, "old_seq": old_seq, "new_seq": new_seq}
    if not await add_once(connection, corrections, values):
        same = (corrections.c.session_id == session_id) & (corrections.c.old_seq == old_seq)
        earlier = same & (corrections.c.new_seq < new_seq)
        await connection.execute(update(corrections).where(earlier).values(new_seq=new_seq))
