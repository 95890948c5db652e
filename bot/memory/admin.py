"""Tending the memory by hand: a session's tiers looked at, checked at once, archived, taken out to files and brought
back. What `roomtone memory` does, without the command line.

Works on the store alone: the bot may run or not. Raises `StoreError`, and `MemoryAdminError` for what the person
who asked must change.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from bot.errors import BotError
from bot.store.sessions import Sessions
from bot.store.tier_rows import StoredTier, with_accesses
from bot.store.tiers import TierStore
from bot.store.turns import SqlTurnStore
from compaction.context.build import SessionContext, build_payload
from compaction.memory.export_format import CompressionQueue, build_queue
from compaction.memory.segment_record import make_record
from compaction.memory.tiers import SegmentTopics, Tier, TierChanges, TieredSegment, check_tiers, last_mentions
from compaction.model import Mode, Seq, SessionId
from compaction.summary.ledger import render_summary

if TYPE_CHECKING:
    from bot.clock import Clock
    from bot.store.database import Database
    from compaction.memory.segment_record import SegmentRecord
    from compaction.model import SegmentId


class MemoryAdminError(BotError):
    """Something was asked that cannot be done: a plain sentence says what to ask instead."""


@dataclass(frozen=True, slots=True)
class SegmentOverview:
    """How a session's segments are kept. `subjects` tells which facts hold."""

    session_id: SessionId
    total_turns: int
    last_check_turn: int
    standings: tuple[StoredTier, ...]
    subjects: SegmentTopics

    def record(self, standing: StoredTier) -> SegmentRecord:
        """Return a segment's record: the one it was compressed to, or what it would be."""
        kept = standing.kept
        made = kept.record or make_record(
            kept.segment, superseded=self.subjects.superseded, at=kept.segment.created_at or kept.segment.ended_at
        )
        return with_accesses(standing, made)

    def queue(self) -> CompressionQueue:
        """Return the queue, as its file has it."""
        return build_queue(
            [each.kept for each in self.standings],
            topics={each.kept.segment.id: self.record(each).topic for each in self.standings},
            total_turns=self.total_turns,
            last_check_turn=self.last_check_turn,
            location=location_of,
        )


class MemoryAdmin:
    """The sessions of an open database, for whoever tends them."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._shelf = TierStore(database)
        self._sessions = Sessions(database, clock)
        self._turns = SqlTurnStore(database, clock)
        self._clock = clock

    async def named(self, session: str | None) -> SessionId:
        """Return the session of that id, or whose id begins so; the last one without a name."""
        if session is None:
            found = await self._sessions.recent(limit=1)
            if not found:
                raise MemoryAdminError("No session is stored yet. `roomtone run` and `roomtone rehearse` make one.")
            return found[0].id
        if await self._sessions.find(SessionId(session)) is not None:
            return SessionId(session)
        begins = [each.id for each in await self._sessions.recent(limit=10_000) if each.id.startswith(session)]
        if len(begins) == 1:
            return begins[0]
        if begins:
            raise MemoryAdminError(f"{len(begins)} sessions begin with {session}: {_few(begins)}. Give more of the id.")
        recent = [each.id for each in await self._sessions.recent(limit=3)]
        hint = f" The last ones are {_few(recent)}." if recent else ""
        raise MemoryAdminError(f"There is no session {session}.{hint}")

    async def overview(self, session_id: SessionId) -> SegmentOverview:
        """Return how a session's segments are kept."""
        standings = await self._shelf.tiers_of(session_id)
        stored = await self._sessions.find(session_id)
        total = 0
        if stored is not None and stored.turn_count:
            total = (await self._turns.load(session_id)).total_turns
        return SegmentOverview(
            session_id,
            total,
            await self._shelf.last_check(session_id),
            standings,
            SegmentTopics(each.kept.segment for each in standings),
        )

    async def check(self, session_id: SessionId, *, max_input_tokens: int, regardless: bool) -> TierChanges:
        """Look at a session's segments now, however long the last check is ago, and do what is due.

        `max_input_tokens`: of which the session's window and summary are a share. `regardless`: of that share.
        """
        if await self._shelf.opted_out(session_id):
            raise MemoryAdminError(
                f"Session {session_id} or its server has opted out. `roomtone memory opt-in` takes that back."
            )
        before = await self.overview(session_id)
        unheard = await self._turns.turns(session_id, Seq(before.last_check_turn), Seq(before.total_turns))
        heard = last_mentions(before.subjects, unheard)
        kept = [_heard(each.kept, heard) for each in before.standings]
        now = self._clock.now()
        done = check_tiers(
            kept,
            before.subjects,
            total_turns=before.total_turns,
            context_tokens=await self._context_tokens(session_id),
            max_input_tokens=max_input_tokens,
            now=now,
            regardless=regardless,
        )
        await self._shelf.apply(session_id, done, kept, total_turns=before.total_turns, now=now)
        return done

    async def archive(self, session_id: SessionId, names: tuple[str, ...]) -> tuple[SegmentId, ...]:
        """Move these segments (ids or how they end, such as `0-10`) into the archive; all compressed ones without
        names. Return which."""
        warm = {
            each.kept.segment.id: each.kept
            for each in await self._shelf.tiers_of(session_id)
            if each.kept.tier is Tier.WARM and each.kept.covers_turns and not each.kept.segment.closing
        }
        if names:
            chosen = tuple(_one_of(warm, name) for name in names)
        else:
            chosen = tuple(name for name, kept in warm.items() if kept.record is not None)
        await self._shelf.archive(session_id, chosen, now=self._clock.now())
        return chosen

    async def clear_archive(self, session_id: SessionId | None) -> int:
        """Leave of everything in the archive its content alone, however long it has been there; return how many."""
        archived = await self._shelf.archived()
        if session_id is not None:
            archived = {session_id: archived[session_id]} if session_id in archived else {}
        return await self._shelf.prune(archived, now=self._clock.now())

    async def _context_tokens(self, session_id: SessionId) -> int:
        """Return what a prompt of the session would cost now, system prompts aside."""
        stored = await self._turns.load(session_id)
        folded = [segment for segment in stored.segments if not segment.closing]
        payload = build_payload(
            SessionContext(
                mode=Mode.SUMMARY,
                total_turns=stored.total_turns,
                cursor=stored.state.cursor,
                summary=render_summary(folded),
                summary_revision=stored.state.revision,
                summary_started_at=None,
                summary_ended_at=None,
                window=stored.window,
                live_notes=stored.live_notes,
                current=None,
                max_input_tokens=1_000_000_000,
            )
        )
        return sum(part.tokens for part in payload)


def location_of(kept: TieredSegment) -> str:
    """Return where a segment's file lies in an export."""
    name = f"{file_name(kept.segment.id)}.json"
    if kept.tier is Tier.COLD:
        return f"sessions/{file_name(kept.segment.session_id)}/archived_context/{name}"
    return f"compressed_context/{name}"


def file_name(name: str) -> str:
    """Return an id as part of a path: what would lead out of its folder is written as %2F and the like."""
    safe = "".join(char if char not in "/\\\0%" else f"%{ord(char):02X}" for char in name)
    return safe.replace(".", "%2E", 1) if safe.startswith(".") else safe


def _heard(kept: TieredSegment, heard: dict[SegmentId, int]) -> TieredSegment:
    last = heard.get(kept.segment.id)
    return kept if last is None or last <= kept.last_mention else replace(kept, last_mention=last)


def _one_of(warm: dict[SegmentId, TieredSegment], name: str) -> SegmentId:
    found = [each for each in warm if each == name or each.endswith(f":{name}")]
    if len(found) == 1:
        return found[0]
    there = _few(list(warm)) if warm else "none"
    raise MemoryAdminError(f"No segment {name} can be archived. Those that can be: {there}.")


def _few(names: list[SessionId] | list[SegmentId]) -> str:
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
