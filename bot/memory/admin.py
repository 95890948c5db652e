"""Manual work on the stored memory, for `roomtone memory`: list, check, archive and clear segments.

It works on the database only, whether the bot runs or not. Raises `StoreError`, and `MemoryAdminError` if the request
must change.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bot.errors import BotError
from bot.memory.tier_checks import move_segments
from bot.store.rows import StoredTier, with_accesses
from bot.store.sessions import Sessions
from bot.store.tiers import TierStore
from bot.store.turns import SqlTurnStore
from compaction.context.turn_text import turn_part
from compaction.memory.segment_record import SegmentRecord, make_record
from compaction.memory.tiers import (
    SegmentTopics,
    Tier,
    TierChanges,
    TieredSegment,
    queue_json,
    unfolded_tokens,
)
from compaction.model import SegmentId, Seq, SessionId
from compaction.payload import PartKind
from compaction.tokens import estimate_text_tokens

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bot.clock import Clock
    from bot.store.database import Database


# More sessions than a database has.
_ALL = 1_000_000


class MemoryAdminError(BotError):
    """The request cannot be carried out. The message says what to ask for instead."""


@dataclass(frozen=True, slots=True)
class SegmentOverview:
    """The tier states of a session's segments. `topics` knows which facts still hold."""

    session_id: SessionId
    total_turns: int
    last_check_turn: int
    tiers: tuple[StoredTier, ...]
    topics: SegmentTopics

    def record(self, tier: StoredTier) -> SegmentRecord:
        """Return a segment's record, or the record it would get if it were compressed now."""
        kept = tier.kept
        made = kept.record or make_record(
            kept.segment, superseded=self.topics.superseded, at=kept.segment.created_at or kept.segment.ended_at
        )
        return with_accesses(tier, made)

    def queue(self) -> dict[str, object]:
        """Return the compression queue as it is written to its file."""
        return queue_json(
            [each.kept for each in self.tiers],
            topics={each.kept.segment.id: self.record(each).topic for each in self.tiers},
            total_turns=self.total_turns,
            last_check_turn=self.last_check_turn,
            location=location_of,
        )


class MemoryAdmin:
    """Manual operations on the sessions of an open database."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._tiers = TierStore(database)
        self._sessions = Sessions(database, clock)
        self._turns = SqlTurnStore(database, clock)
        self._clock = clock

    async def find_session(self, session: str | None) -> SessionId:
        """Return the id of the session with that id or id prefix; the latest session for None.

        Raises `MemoryAdminError` if there is none, or if several ids begin so.
        """
        known = [each.id for each in await self._sessions.recent(limit=_ALL)]
        if not known:
            raise MemoryAdminError("No session is stored yet. A session begins when the bot joins a voice channel.")
        if session is None:
            return known[0]
        begins = [SessionId(session)] if session in known else [each for each in known if each.startswith(session)]
        if len(begins) == 1:
            return begins[0]
        if begins:
            raise MemoryAdminError(
                f"{len(begins)} sessions begin with {session}: {_list_some(begins)}. Give more of the id."
            )
        raise MemoryAdminError(f"There is no session {session}. The last ones are {_list_some(known[:3])}.")

    async def overview(self, session_id: SessionId) -> SegmentOverview:
        tiers = await self._tiers.tiers_of(session_id)
        stored = await self._sessions.find(session_id)
        return SegmentOverview(
            session_id,
            0 if stored is None else stored.turn_count,
            await self._tiers.last_check(session_id),
            tiers,
            SegmentTopics(each.kept.segment for each in tiers),
        )

    async def check(self, session_id: SessionId, *, max_input_tokens: int, regardless: bool) -> TierChanges:
        """Check a session's tiers now and store the changes.

        `max_input_tokens`: the context size that the session's share is measured against. `regardless`: ignore the
        share. Raises `MemoryAdminError` if the tiers are frozen.
        """
        if await self._tiers.is_frozen(session_id):
            raise MemoryAdminError(
                f"The tiers of session {session_id} are frozen, or those of its server. `roomtone memory unfreeze` "
                "ends that."
            )
        before = await self.overview(session_id)
        # What the session's prompt would have if nothing were folded, without system prompts.
        stored = await self._turns.load(session_id)
        window = sum(turn_part(turn, PartKind.TURN).tokens for turn in stored.window)
        _, done = await move_segments(
            self._tiers,
            session_id,
            before.topics,
            await self._turns.turns(session_id, Seq(before.last_check_turn), Seq(before.total_turns)),
            total_turns=before.total_turns,
            context_tokens=unfolded_tokens(stored.segments, window + estimate_text_tokens(stored.state.summary or "")),
            max_input_tokens=max_input_tokens,
            now=self._clock.now(),
            regardless=regardless,
        )
        return done

    async def archive(self, session_id: SessionId, names: tuple[str, ...]) -> tuple[SegmentId, ...]:
        """Archive these segments and return their ids. Without names: all compressed segments.

        `names`: ids, or first and last turn such as `0-9`.
        """
        warm = {
            each.kept.segment.id: each.kept
            for each in await self._tiers.tiers_of(session_id)
            if each.kept.tier is Tier.WARM and each.kept.covers_turns and not each.kept.segment.closing
        }
        if names:
            chosen = tuple(_match_segment(warm, name) for name in names)
        else:
            chosen = tuple(name for name, kept in warm.items() if kept.record is not None)
        await self._tiers.archive(session_id, chosen, now=self._clock.now())
        return chosen

    async def clear_archive(self, session_id: SessionId | None) -> int:
        """Prune everything in the archive now. Returns how many segments were pruned."""
        everywhere = await self._tiers.archived()
        archived = {each: names for each, names in everywhere.items() if session_id in {None, each}}
        return await self._tiers.prune(archived, now=self._clock.now())


def location_of(kept: TieredSegment) -> str:
    """Return the path of a segment's file within an export."""
    name = f"{file_name(kept.segment.id)}.json"
    if kept.tier is Tier.COLD:
        return f"sessions/{file_name(kept.segment.session_id)}/archived_context/{name}"
    return f"compressed_context/{name}"


def file_name(name: str) -> str:
    """Return an id as a safe file name: characters such as / become %2F."""
    safe = "".join(char if char not in "/\\\0%" else f"%{ord(char):02X}" for char in name)
    return safe.replace(".", "%2E", 1) if safe.startswith(".") else safe


def turn_range(segment_id: SegmentId) -> str:
    """Return the first and last turn of a segment, as `0-9`; the id itself if it does not name them.

    The id has the turn after the last.
    """
    match = re.search(r":(\d+)-(\d+)(?:-closing)?$", segment_id)
    return f"{match[1]}-{int(match[2]) - 1}" if match is not None else segment_id


def _match_segment(warm: dict[SegmentId, TieredSegment], name: str) -> SegmentId:
    found = [each for each in warm if name in {each, turn_range(each)}]
    if len(found) == 1:
        return found[0]
    there = _list_some([turn_range(each) for each in warm]) if warm else "none"
    raise MemoryAdminError(f"No segment {name} can be archived. Those that can be: {there}.")


def _list_some(names: Sequence[str]) -> str:
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
