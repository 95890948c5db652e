"""Moves the segments of an open session between tiers, every ten turns. `compaction.memory.tiers` decides."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import structlog

from compaction.memory.tiers import (
    CHECK_EVERY_TURNS,
    SegmentTopics,
    TierChanges,
    TierCounts,
    check_tiers,
    unfolded_tokens,
    with_mentions,
)

if TYPE_CHECKING:
    from bot.clock import Clock
    from bot.store.tiers import TierStore
    from compaction.model import SessionId
    from compaction.session import SessionMemory

log = structlog.get_logger()

# Segments of a long resumed session are read in slices, so that audio is not delayed.
_SLICE = 25


class TierChecks:
    """The checks of one session. `context_tokens`: of the last payload that was sent; at most `max_input_tokens`."""

    def __init__(
        self,
        session_id: SessionId,
        memory: SessionMemory,
        tiers: TierStore,
        *,
        clock: Clock,
        max_input_tokens: int,
    ) -> None:
        self._session_id = session_id
        self._memory = memory
        self._tiers = tiers
        self._clock = clock
        self._max_input_tokens = max_input_tokens
        self.context_tokens = 0
        # As of the last check of this process.
        self.counts = TierCounts()
        # The turns in the answers to which a tool has failed, since the process began.
        self.failed_turns: set[int] = set()
        # What the first so many segments are about.
        self._topics = SegmentTopics()
        self._read_segments = 0
        # The turns at the last check; None until they are read from the store.
        self._last_check: int | None = None
        # The first turn that was not searched for mentions of segments.
        self._heard_through = memory.total_turns

    def on_outside_change(self) -> None:
        """Read all segments again at the next check, because words may have been forgotten."""
        self._topics, self._read_segments = SegmentTopics(), 0

    async def check_if_due(self) -> None:
        """Move segments between tiers, if enough turns were said since the last check. Raises `StoreError`."""
        if self._last_check is None:
            self._last_check = await self._tiers.last_check(self._session_id)
        total = self._memory.total_turns
        if total - self._last_check < CHECK_EVERY_TURNS:
            return
        if await self._tiers.is_frozen(self._session_id):
            self._last_check = total
            return
        begun = self._clock.monotonic()
        await self._read_new_segments()
        # As they are now: the turns that leave the memory meanwhile could not be heard again.
        unheard = [turn for turn in self._memory.turns if turn.seq >= self._heard_through]
        stored = await self._tiers.tiers_of(self._session_id, self._memory.segments)
        kept = with_mentions((tier.kept for tier in stored), self._topics, unheard)
        done = check_tiers(
            kept,
            self._topics,
            total_turns=total,
            context_tokens=unfolded_tokens(self._memory.segments, self.context_tokens),
            max_input_tokens=self._max_input_tokens,
            now=self._clock.now(),
            failed_turns=self.failed_turns,
        )
        changed = [
            each
            for each, before in zip(kept, stored, strict=True)
            if not before.known or each.last_mention != before.kept.last_mention
        ]
        await self._tiers.apply(self._session_id, done, changed, total_turns=total, now=self._clock.now())
        self._last_check = total
        self._heard_through = total
        self.counts = TierCounts.after(kept, done)
        self._log_check(done, total, begun)

    async def _read_new_segments(self) -> None:
        folded = self._memory.segments
        while self._read_segments < len(folded):
            for segment in folded[self._read_segments : self._read_segments + _SLICE]:
                self._topics.add(segment)
            self._read_segments = min(self._read_segments + _SLICE, len(folded))
            await asyncio.sleep(0)

    def _log_check(self, done: TierChanges, total: int, begun: float) -> None:
        log.info(
            "tiers_checked",
            session_id=self._session_id,
            total_turns=total,
            segment_count=len(self._memory.segments),
            context_share=round(
                unfolded_tokens(self._memory.segments, self.context_tokens) / max(1, self._max_input_tokens), 3
            ),
            queued=len(done.queue),
            released=len(done.release),
            compressed=len(done.compress),
            archived=len(done.archive),
            in_archive=self.counts.archived,
            tokens_before=done.tokens_before,
            tokens_after=done.tokens_after,
            duration_ms=round(1000 * (self._clock.monotonic() - begun), 1),
        )
