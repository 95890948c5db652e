"""Deletes what is too old from sessions that stay: a session may go on for months.

Old turns lose their words; those that no part of an open room can need any more are deleted. Segments, notes, facts
about people and everything that may hold old words go with them. Later segments keep their facts and gists, but not
their paragraphs, which tell of the whole session: the next fold writes a new one. What is old goes by its columns, also
where it cannot be read; a later segment that cannot be read keeps the facts that can.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from sqlalchemy import delete, func, or_, select, update

from bot.store.each_session import SessionResults, write_each
from bot.store.history import rerender_summary
from bot.store.prompts import RENEWED_S
from bot.store.rebuilding import blanked_refs, rebuild_records, store_segments
from bot.store.salvage import salvage_segment
from bot.store.stored_memory import segment_rows
from bot.store.tables import (
    landings,
    notes,
    person_facts,
    person_forgets,
    segments,
    sent_prompts,
    sent_texts,
    sessions,
    turns,
)
from bot.store.thread_work import in_thread
from compaction.memory.segment_forgetting import forget_in_segment
from compaction.model import SessionId
from compaction.timeline import CAPACITY

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence

    from sqlalchemy import Select
    from sqlalchemy.ext.asyncio import AsyncConnection

    from bot.store.database import Database
    from compaction.errors import StoreError
    from compaction.model import Segment, Seq

# Old turns that lose their words in one transaction: new turns wait meanwhile.
MOST_AGED = 4_000
# The reason why code makes the summary in place of a paragraph that may hold what was deleted.
AGED = "It told of what is too old to be kept."


async def delete_aged(
    database: Database, *, before: float, now: float, guild_id: int | None = None
) -> SessionResults[SessionId]:
    """Delete what was said or seen before that time, in all sessions; return those that changed.

    `before`, `now`: UTC epoch seconds. `guild_id`: only in that server's sessions. Each session is one transaction, so
    that turns can be stored in between; if one fails, the others go on. Where many turns are old, they lose their words
    in transactions before that one. Raises `StoreError` if all would fail.
    """
    async with database.reading() as connection:
        wanted = _select_aged(before)
        if guild_id is not None:
            wanted = wanted.where(sessions.c.guild_id == guild_id)
        names = (await connection.scalars(wanted)).all()

    changed: dict[SessionId, None] = {}
    failure: StoreError | None = None
    for session_id in map(SessionId, names):
        for step in await _steps(database, session_id, before=before, now=now):
            done = await write_each(database, [session_id], step)
            if done.failure is not None:
                failure = failure or done.failure
                break
            changed[session_id] = None
    return SessionResults(tuple(changed), failure)


async def _steps(
    database: Database, session_id: SessionId, *, before: float, now: float
) -> list[Callable[[AsyncConnection, SessionId], Awaitable[None]]]:
    """Return what is done in one session, one transaction each: some turns lose their words, then some more, and all
    the rest is done at last.
    """
    old = (turns.c.session_id == session_id) & (turns.c.ended_at < before) & turns.c.tombstone.is_(False)
    async with database.reading() as connection:
        ends = (await connection.scalars(select(turns.c.ended_at).where(old).order_by(turns.c.ended_at))).all()
    return [
        *(partial(_blank_turns, before=end) for end in ends[MOST_AGED::MOST_AGED] if end > ends[0]),
        partial(_age, before=before, now=now),
    ]


def _select_aged(before: float) -> Select[str]:
    aged = (
        select(turns.c.session_id).where(turns.c.ended_at < before, turns.c.tombstone.is_(False)),
        select(segments.c.session_id).where(segments.c.ended_at < before),
        select(notes.c.session_id).where(notes.c.at < before),
        select(person_facts.c.session_id).where(person_facts.c.at < before),
        select(sent_prompts.c.session_id).where(sent_prompts.c.sent_at < before - RENEWED_S),
    )
    return select(sessions.c.id).where(or_(*(sessions.c.id.in_(each) for each in aged))).order_by(sessions.c.id)


async def _age(connection: AsyncConnection, session_id: SessionId, *, before: float, now: float) -> None:
    of_session = turns.c.session_id == session_id
    old = of_session & (turns.c.ended_at < before)
    seqs = frozenset((await connection.scalars(select(turns.c.seq).where(old))).all())
    await _blank_turns(connection, session_id, before=before)
    stale = (notes.c.session_id == session_id) & (notes.c.at < before)
    gone_notes = {row.id: row.what for row in await connection.execute(select(notes.c.id, notes.c.what).where(stale))}
    await connection.execute(delete(notes).where(stale))
    kept_from = await _age_segments(connection, session_id, seqs, gone_notes, before=before, now=now)
    cursor = await connection.scalar(select(sessions.c.cursor).where(sessions.c.id == session_id))
    # What an open room holds in memory must be found in the store, without its words.
    needed_from = min((cursor or 0) - CAPACITY, (cursor or 0) if kept_from is None else kept_from)
    await connection.execute(delete(turns).where(old, turns.c.seq < needed_from))
    await connection.execute(
        delete(person_facts).where(person_facts.c.session_id == session_id, person_facts.c.at < before)
    )
    # Nothing is extracted any more from turns that have no words.
    worded = of_session & turns.c.tombstone.is_(False)
    first = await connection.scalar(select(func.min(turns.c.seq)).where(worded))
    needless = person_forgets.c.session_id == session_id
    if first is not None:
        needless &= person_forgets.c.through_seq <= first
    await connection.execute(delete(person_forgets).where(needless))
    # Sent for the last time within that time after it was noted.
    unsent = (sent_prompts.c.session_id == session_id) & (sent_prompts.c.sent_at < before - RENEWED_S)
    await connection.execute(delete(sent_prompts).where(unsent))
    # Each of these may hold something that was said long before it was made.
    await connection.execute(delete(sent_texts).where(sent_texts.c.session_id == session_id))
    await connection.execute(delete(landings).where(landings.c.session_id == session_id, landings.c.landed_at < before))
    await connection.execute(update(landings).where(landings.c.session_id == session_id).values(summary=None))
    await rerender_summary(connection, session_id, now=now)


async def _blank_turns(connection: AsyncConnection, session_id: SessionId, *, before: float) -> None:
    old = (turns.c.session_id == session_id) & (turns.c.ended_at < before) & turns.c.tombstone.is_(False)
    # Triggers remove the turns from the index.
    await connection.execute(update(turns).where(old).values(parts="[]", tombstone=True))


async def _age_segments(
    connection: AsyncConnection,
    session_id: SessionId,
    seqs: frozenset[Seq],
    gone_notes: Mapping[str, str],
    *,
    before: float,
    now: float,
) -> Seq | None:
    """Delete old segments, and make those anew that tell of older ones. Returns where the first one left begins.

    `gone_notes`: the deleted notes, what they said by id.
    """
    of_session = segments.c.session_id == session_id
    await connection.execute(delete(segments).where(of_session, segments.c.ended_at < before))
    found = await segment_rows(connection, session_id)
    salvaged = await in_thread(connection, lambda: list(map(salvage_segment, found)))
    if not salvaged:
        return None
    left = [each.thing for each in salvaged]
    # Nobody can tell whether a segment that cannot be read has one of the notes.
    lost = {each.thing.id for each in salvaged if each.lost is not None and gone_notes}
    # A segment that lies on both sides of the limit, or has an older note.
    aged = lost | {
        each.id for each in left if each.started_at < before or not gone_notes.keys().isdisjoint(each.note_ids)
    }
    changed = await in_thread(connection, lambda: _remake(left, seqs, gone_notes, aged))
    await store_segments(connection, session_id, changed)
    superseded = frozenset(ref for segment in left for fact in segment.facts for ref in fact.closes)
    await rebuild_records(connection, session_id, [each for each in changed if each.id in aged], superseded, now=now)
    stored_as = {each.id: each for each in left}
    for ref in (ref for each in changed for ref in blanked_refs(stored_as[each.id], each)):
        await connection.execute(delete(person_facts).where(person_facts.c.id == ref))
    return min(each.start for each in left)


def _remake(
    left: Sequence[Segment],
    seqs: frozenset[Seq],
    gone_notes: Mapping[str, str],
    aged: Collection[str],
) -> list[Segment]:
    made: list[Segment] = []
    for each in left:
        segment = each
        if each.id in aged:
            segment, _ = forget_in_segment(each, seqs, frozenset(gone_notes))
        if segment.paragraph or segment is not each:
            segment = replace(segment, paragraph="")
        made.append(segment)
    return [new for old, new in zip(left, made, strict=True) if new is not old]
