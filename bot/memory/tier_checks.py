"""Moves the segments of a session between tiers: of an open one every ten turns. `compaction.memory.tiers` decides."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import structlog

from compaction.log_events import MemoryEvent
from compaction.memory.tiers import (
    CHECK_EVERY_TURNS,
    SegmentTopics,
    TierChanges,
    TierCounts,
    TieredSegment,
    check_tiers,
    unfolded_tokens,
    with_mentions,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from bot.clock import Clock
    from bot.store.tiers import TierStore
    from compaction.model import Segment, SessionId, Turn
    from compaction.session import SessionTimeline

log = structlog.get_logger()


async def move_segments(
    tiers: TierStore,
    session_id: SessionId,
    topics: SegmentTopics,
    unheard: Iterable[Turn],
    *,
    segments: Sequence[Segment] | None = None,
    total_turns: int,
    context_tokens: int,
    max_input_tokens: int,
    now: float,
    failed_turns: Collection[int] = (),
    regardless: bool = False,
) -> tuple[list[TieredSegment], TierChanges]:
    """Check a session's tiers and store the changes. Return the segments as they were before, and the changes.

    `unheard`: the turns that were not searched for mentions of segments. `segments`: as in `TierStore.tiers_of`; the
    others: as in `check_tiers`. Raises `StoreError`.
    """
    stored = await tiers.tiers_of(session_id, segments)
    kept = with_mentions((tier.kept for tier in stored), topics, unheard)
    done = check_tiers(
        kept,
        topics,
        total_turns=total_turns,
        context_tokens=context_tokens,
        max_input_tokens=max_input_tokens,
        now=now,
        failed_turns=failed_turns,
        regardless=regardless,
    )
    changed = [
        each
        for each, before in zip(kept, stored, strict=True)
        if not before.known or each.last_mention != before.kept.last_mention
    ]
    await tiers.apply(session_id, done, changed, total_turns=total_turns, now=now)
    return kept, done


class TierChecks:
    """The checks of one session. `context_tokens`: of the last payload that was sent; at most `max_input_tokens`."""

    def __init__(
        self,
        session_id: SessionId,
        timeline: SessionTimeline,
        tiers: TierStore,
        *,
        clock: Clock,
        max_input_tokens: int,
    ) -> None:
        self._session_id = session_id
        self._timeline = timeline
        self._tiers = tiers
        self._clock = clock
        self._max_input_tokens = max_input_tokens
        self.context_tokens = 0
        # As of the last check of this process.
        self.counts = TierCounts()
        # The turns in the answers to which a tool has failed, since the process began.
        self.failed_turns: set[int] = set()
        self._topics = SegmentTopics()
        # The turns at the last check; None until they are read from the store.
        self._last_check: int | None = None
        # The first turn that was not searched for mentions of segments.
        self._heard_through = timeline.total_turns

    def on_outside_change(self) -> None:
        """Read all segments again at the next check, because words may have been forgotten."""
        self._topics = SegmentTopics()

    async def check_if_due(self) -> None:
        """Move segments between tiers, if enough turns were said since the last check. Raises `StoreError`."""
        if self._last_check is None:
            self._last_check = await self._tiers.last_check(self._session_id)
        total = self._timeline.total_turns
        if total - self._last_check < CHECK_EVERY_TURNS:
            return
        if await self._tiers.is_frozen(self._session_id):
            self._last_check = total
            return
        begun = self._clock.monotonic()
        topics = self._topics
        for segment in self._timeline.compactor.segments:
            topics.add(segment)
            # A long resumed session has hundreds, and audio must not be delayed.
            await asyncio.sleep(0)
        segments, tokens = (
            self._timeline.compactor.segments,
            unfolded_tokens(self._timeline.compactor.segments, self.context_tokens),
        )
        kept, done = await move_segments(
            self._tiers,
            self._session_id,
            topics,
            # As they are now: the turns that leave the memory meanwhile could not be heard again.
            [turn for turn in self._timeline.turns if turn.seq >= self._heard_through],
            segments=segments,
            total_turns=total,
            context_tokens=tokens,
            max_input_tokens=self._max_input_tokens,
            now=self._clock.now(),
            failed_turns=self.failed_turns,
        )
        self._last_check = total
        self._heard_through = total
        self.counts = TierCounts.after(kept, done)
        log.info(
            MemoryEvent.TIERS_CHECKED,
            session_id=self._session_id,
            total_turns=total,
            segment_count=len(segments),
            context_share=round(tokens / max(1, self._max_input_tokens), 3),
            queued=len(done.queue),
            released=len(done.release),
            compressed=len(done.compress),
            archived=len(done.archive),
            in_archive=self.counts.archived,
            tokens_before=done.tokens_before,
            tokens_after=done.tokens_after,
            duration_ms=round(1000 * (self._clock.monotonic() - begun), 1),
        )
