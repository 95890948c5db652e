"""Stores which folded segments are queued for compression, compressed, archived or pruned.

`compaction.memory.tiers` decides; this module only stores. A segment's text stays in `segments` until the segment is
pruned. Every method raises `StoreError`, and each is one transaction but `prune` and `archive`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sqlalchemy import and_, bindparam, case, delete, func, or_, select, update

from bot.store.claims import writing_session
from bot.store.history import rerender_summary, segments_of
from bot.store.inserts import add_once, execute_for_each, insert_into, put_row
from bot.store.rows import StoredTier, record_values, segment_from_row, segment_values, tier_from_row
from bot.store.search.passages import index_source
from bot.store.search.tags import ARCHIVED_TAG
from bot.store.tables import passages, segment_tiers, segments, sessions, tier_checks, tier_opt_outs, turns
from compaction.memory.passage import PassageKind
from compaction.memory.segment_record import more_relevant, relevance_of
from compaction.memory.tiers import TierChanges, TieredSegment
from compaction.model import SAID, FactKind, Segment, SegmentId, SessionId, TurnKind
from compaction.summary.port import NOTHING_KEPT
from compaction.tokens import estimate_text_tokens

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from sqlalchemy.ext.asyncio import AsyncConnection

    from bot.store.database import Database

_SPOKEN = sorted(kind.value for kind in SAID | {TurnKind.ASSISTANT})
_RECORD_COLUMNS = (
    "queued_at_turn",
    "queued_at",
    "compressed_at_turn",
    "compressed_at",
    "topic",
    "compressed_content",
    "original_tokens",
    "compressed_tokens",
    "key_decisions",
    "key_files",
    "contains_code",
    "contains_errors",
    "task_completed",
)
# Segments pruned in one transaction: each holds the write lock for some milliseconds.
PRUNED_AT_ONCE = 15


class TierStore:
    """The tiers of all segments. Safe for all tasks of one event loop."""

    def __init__(self, database: Database) -> None:
        self._database = database

    # -- reading ---------------------------------------------------------------------------------------------

    async def tiers_of(self, session_id: SessionId, folded: Sequence[Segment] | None = None) -> tuple[StoredTier, ...]:
        """Return the tier state of each segment of a session, in order.

        `folded`: the segments, if the caller has them in memory; otherwise they are read from the store.
        """
        async with self._database.reading() as connection:
            if folded is None:
                folded = await segments_of(connection, session_id)
            of_session = select(segment_tiers).where(segment_tiers.c.session_id == session_id)
            known = {row.segment_id: row for row in await connection.execute(of_session)}
            new = [segment for segment in folded if segment.id not in known]
            counts = await _message_counts(connection, session_id, new)
        return tuple(tier_from_row(segment, known.get(segment.id), counts) for segment in folded)

    async def revision(self, session_id: SessionId) -> int:
        """Return the session's revision, which each change of its summary raises; 0 for one that is not stored."""
        return int(await self._database.value(select(sessions.c.revision).where(sessions.c.id == session_id)) or 0)

    async def last_check(self, session_id: SessionId) -> int:
        """Return how many turns the session had at its last check; 0 before one."""
        wanted = select(tier_checks.c.last_check_turn).where(tier_checks.c.session_id == session_id)
        return int(await self._database.value(wanted) or 0)

    async def is_frozen(self, session_id: SessionId) -> bool:
        """Return whether the tiers of a session or of its guild stay as they are."""
        async with self._database.reading() as connection:
            guild = await connection.scalar(select(sessions.c.guild_id).where(sessions.c.id == session_id))
            wanted = and_(tier_opt_outs.c.scope == "session", tier_opt_outs.c.name == session_id)
            if guild is not None:
                wanted = or_(wanted, and_(tier_opt_outs.c.scope == "guild", tier_opt_outs.c.name == str(guild)))
            return bool(await connection.scalar(select(func.count()).select_from(tier_opt_outs).where(wanted)))

    async def frozen(self) -> tuple[tuple[str, str], ...]:
        """Return the frozen guilds and sessions, each as scope and id."""
        wanted = select(tier_opt_outs).order_by(tier_opt_outs.c.scope, tier_opt_outs.c.name)
        return tuple((row.scope, row.name) for row in await self._database.rows(wanted))

    # -- moving ----------------------------------------------------------------------------------------------

    async def apply(
        self,
        session_id: SessionId,
        check: TierChanges,
        kept: Iterable[TieredSegment],
        *,
        total_turns: int,
        now: float,
    ) -> None:
        """Store the changes of a tier check and the segments' last mentions. `now`: UTC epoch seconds.

        `kept`: the segments that are new or were mentioned since the last check.
        """
        async with self._database.writing() as connection:
            await _upsert(connection, session_id, kept)
            await _change(connection, session_id, check.queue, {"queued_at_turn": total_turns, "queued_at": now})
            await _change(connection, session_id, check.release, {"queued_at_turn": None, "queued_at": None})
            for record in check.compress:
                values = {"compressed_at_turn": total_turns} | record_values(record)
                await _change(connection, session_id, [record.segment_id], values)
            await _archive(connection, session_id, check.archive, now)
            await put_row(connection, tier_checks, {"session_id": session_id}, {"last_check_turn": total_turns})

    async def count_accesses(self, found: Mapping[SessionId, Iterable[tuple[int, int]]], at: float) -> None:
        """Count one access of the segments that contain these turns, and treat it as a mention.

        `found`: inclusive ranges of turn numbers by session. `at`: UTC epoch seconds.
        """
        async with self._database.writing() as connection:
            for session_id, ranges in found.items():
                for first, last in ranges:
                    await _count_access(connection, session_id, first, last, at)

    async def prune(self, segment_ids: Mapping[SessionId, Sequence[SegmentId]], *, now: float) -> int:
        """Reduce these archived segments to a gist without facts; return how many were pruned.

        It makes many short transactions, so that turns can be stored in between.
        """
        pruned = 0
        for session_id, names in segment_ids.items():
            for start in range(0, len(names), PRUNED_AT_ONCE):
                async with writing_session(self._database, session_id) as connection:
                    pruned += await _prune_some(connection, session_id, names[start : start + PRUNED_AT_ONCE], now)
        return pruned

    async def archived(self, *, before: float | None = None) -> Mapping[SessionId, tuple[SegmentId, ...]]:
        """Return the archived, unpruned segments of all sessions.

        `before`: only segments archived by then (epoch seconds).
        """
        wanted = select(segment_tiers.c.session_id, segment_tiers.c.segment_id).where(
            segment_tiers.c.archived_at.is_not(None), segment_tiers.c.pruned_at.is_(None)
        )
        if before is not None:
            wanted = wanted.where(segment_tiers.c.archived_at <= before)
        found: dict[SessionId, tuple[SegmentId, ...]] = {}
        for row in await self._database.rows(wanted):
            session_id = SessionId(row.session_id)
            found[session_id] = (*found.get(session_id, ()), SegmentId(row.segment_id))
        return found

    async def archive(self, session_id: SessionId, segment_ids: Sequence[SegmentId], *, now: float) -> None:
        """Archive segments even if the context is not full."""
        stored = await self.tiers_of(session_id)
        async with writing_session(self._database, session_id) as connection:
            chosen = [each.kept for each in stored if each.kept.segment.id in segment_ids]
            await _upsert(connection, session_id, chosen)
            await _archive(connection, session_id, segment_ids, now)

    async def set_frozen(self, scope: str, name: str, *, frozen: bool) -> bool:
        """Freeze the tiers of a guild or session, or unfreeze them. Returns whether anything changed."""
        async with self._database.writing() as connection:
            if frozen:
                return await add_once(connection, tier_opt_outs, {"scope": scope, "name": name})
            same = and_(tier_opt_outs.c.scope == scope, tier_opt_outs.c.name == name)
            return (await connection.execute(delete(tier_opt_outs).where(same))).rowcount == 1


async def mark_archived(connection: AsyncConnection, session_id: SessionId, name: SegmentId) -> None:
    """Tag a segment's passage as archived, inside a write transaction: search then skips it by default."""
    here = (passages.c.session_id == session_id) & (passages.c.kind == PassageKind.SEGMENT.value)
    unmarked = passages.c.tags.not_like(f"%{ARCHIVED_TAG}%")
    await connection.execute(
        update(passages).where(here, passages.c.key == name, unmarked).values(tags=passages.c.tags + f" {ARCHIVED_TAG}")
    )


async def drop_record(connection: AsyncConnection, session_id: SessionId, segment_id: SegmentId) -> None:
    """Clear a segment's record, inside a write transaction. The access count is kept."""
    await _change(connection, session_id, [segment_id], dict.fromkeys(_RECORD_COLUMNS))


async def _message_counts(
    connection: AsyncConnection, session_id: SessionId, new: Sequence[Segment]
) -> dict[SegmentId, int]:
    if not new:
        return {}
    spoken = (turns.c.session_id == session_id) & turns.c.kind.in_(_SPOKEN) & turns.c.tombstone.is_(False)
    within = and_(spoken, turns.c.seq >= segments.c.start_seq, turns.c.seq < segments.c.end_seq)
    counted = (
        select(segments.c.id, func.count(turns.c.seq).label("messages"))
        .join(turns, within)
        .where(segments.c.session_id == session_id, segments.c.start_seq >= min(each.start for each in new))
        .group_by(segments.c.id)
    )
    return {SegmentId(row.id): row.messages for row in await connection.execute(counted)}


async def _upsert(connection: AsyncConnection, session_id: SessionId, kept: Iterable[TieredSegment]) -> None:
    """Store the segments that are new, and later mentions of the others."""
    row = insert_into(connection, segment_tiers)
    mention = row.excluded.last_mention
    upsert = row.on_conflict_do_update(
        index_elements=["session_id", "segment_id"],
        set_={"last_mention": mention},
        where=segment_tiers.c.last_mention < mention,
    )
    values: list[dict[str, object]] = [
        {
            "session_id": session_id,
            "segment_id": each.segment.id,
            "message_count": each.message_count,
            "last_mention": each.last_mention,
        }
        for each in kept
    ]
    await execute_for_each(connection, upsert, values)


async def _change(
    connection: AsyncConnection, session_id: SessionId, names: Sequence[SegmentId], values: Mapping[str, object]
) -> None:
    if names:
        same = (segment_tiers.c.session_id == session_id) & (segment_tiers.c.segment_id == bindparam("named"))
        await connection.execute(
            update(segment_tiers).where(same).values(dict(values)), [{"named": name} for name in names]
        )


async def _archive(connection: AsyncConnection, session_id: SessionId, names: Sequence[SegmentId], now: float) -> None:
    await _change(connection, session_id, names, {"archived_at": now})
    for name in names:
        await mark_archived(connection, session_id, name)


async def _count_access(connection: AsyncConnection, session_id: SessionId, first: int, last: int, at: float) -> None:
    holding = (
        select(segments)
        .where(segments.c.session_id == session_id, segments.c.start_seq <= last, segments.c.end_seq > first)
        .where(segments.c.start_seq < segments.c.end_seq)
    )
    found = [segment_from_row(row) for row in await connection.execute(holding)]
    if not found:
        return
    total = await connection.scalar(select(func.max(turns.c.seq)).where(turns.c.session_id == session_id))
    counts = await _message_counts(connection, session_id, found)
    for segment in found:
        spoken_of = TieredSegment(segment, counts.get(segment.id, 0), total or segment.end - 1)
        await _upsert(connection, session_id, [spoken_of])
        before = await connection.scalar(select(segment_tiers.c.relevance_score).where(_row_of(session_id, segment.id)))
        relevance = more_relevant(relevance_of(segment.facts) if before is None else before)
        await connection.execute(
            update(segment_tiers)
            .where(_row_of(session_id, segment.id))
            .values(
                access_count=segment_tiers.c.access_count + 1,
                last_accessed=case(
                    (segment_tiers.c.last_accessed > at, segment_tiers.c.last_accessed), else_=bindparam("at_now", at)
                ),
                relevance_score=relevance,
            )
        )


async def _prune_some(
    connection: AsyncConnection, session_id: SessionId, names: Sequence[SegmentId], now: float
) -> int:
    """Prune these segments of one session. Returns how many were pruned."""
    done = sum([await _prune(connection, session_id, name, now) for name in names])
    if done and await _is_open(connection, session_id):
        await rerender_summary(connection, session_id)
    return done


async def _prune(connection: AsyncConnection, session_id: SessionId, name: SegmentId, now: float) -> int:
    row = (
        await connection.execute(
            select(segment_tiers).where(
                _row_of(session_id, name), segment_tiers.c.archived_at.is_not(None), segment_tiers.c.pruned_at.is_(None)
            )
        )
    ).one_or_none()
    if row is None:
        return 0
    same = (segments.c.session_id == session_id) & (segments.c.id == name)
    # Triggers remove the old text from the index.
    whole = segment_from_row((await connection.execute(select(segments).where(same))).one())
    # That something was told in confidence stays known: the gist may tell of it.
    marks = tuple(fact.blanked() for fact in whole.facts if fact.kind is FactKind.CONFIDED)
    left = replace(whole, facts=marks, pruned=True)
    kept = {"facts": segment_values(session_id, left)["facts"], "pruned": True}
    await connection.execute(update(segments).where(same).values(kept))
    gist = NOTHING_KEPT if left.is_confided else left.gist
    short = {"compressed_content": gist, "compressed_tokens": estimate_text_tokens(gist)}
    gone = {"key_decisions": "[]", "key_files": "[]", "contains_code": False, "contains_errors": False}
    record = {} if row.compressed_at is None else short
    await _change(connection, session_id, [name], {"pruned_at": now} | gone | record)
    await index_source(connection, session_id, left)
    await mark_archived(connection, session_id, name)
    return 1


async def _is_open(connection: AsyncConnection, session_id: SessionId) -> bool:
    wanted = select(sessions.c.id).where(sessions.c.id == session_id, sessions.c.ended_at.is_(None))
    return await connection.scalar(wanted) is not None


def _row_of(session_id: SessionId, name: SegmentId) -> Any:
    return (segment_tiers.c.session_id == session_id) & (segment_tiers.c.segment_id == name)
