"""Background work on a session's memory: extracts facts about people, moves segments between tiers.

`compaction.memory.tiers` and `compaction.memory.people` decide; this module waits and stores. The conversation never
waits for it, and failed work is retried at the next occasion.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

import structlog

from bot.memory.sent_texts import SentTexts
from compaction.errors import StaleOwnerError, StoreError
from compaction.folding.window import BATCH_SIZE
from compaction.memory.tiers import (
    SegmentTopics,
    Tier,
    TierChanges,
    TieredSegment,
    check_tiers,
    is_due,
    last_mentions,
)
from compaction.model import Seq
from compaction.summary.extractive import extract_facts
from compaction.summary.port import KnownFact, known_facts_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from bot.clock import Clock
    from bot.memory.access_log import AccessLog
    from bot.memory.people import PeopleBook
    from bot.store.prompts import PromptStore
    from bot.store.tier_rows import StoredTier
    from bot.store.tiers import TierStore
    from compaction.memory.people import Audience
    from compaction.model import Segment, SegmentId, SessionId, Turn
    from compaction.payload import PayloadPart
    from compaction.ports import TurnStore
    from compaction.session import SessionMemory
    from compaction.settings import TierSettings

log = structlog.get_logger()

# Segments of a long resumed session are read in slices, so that audio is not delayed.
_SLICE = 25
# How often in one run something is stored or drawn again, because the session changed meanwhile.
_MOST_REFUSED = 3


class MemoryUpkeep:
    """The background work of one session. Its room runs `run` in a task and calls `finish` when the session ends."""

    def __init__(
        self,
        session_id: SessionId,
        guild_id: int | None,
        *,
        memory: SessionMemory,
        turns: TurnStore,
        tiers: TierStore,
        people: PeopleBook,
        prompts: PromptStore,
        accesses: AccessLog,
        settings: TierSettings,
        clock: Clock,
        max_input_tokens: int,
    ) -> None:
        self._session_id = session_id
        self._guild_id = guild_id
        self._memory = memory
        self._turns = turns
        self._tiers = tiers
        self._people = people
        self._sent_texts = SentTexts(session_id, prompts, clock)
        self._accesses = accesses
        self._settings = settings
        self._clock = clock
        self._max_input_tokens = max_input_tokens
        self._wake = asyncio.Event()
        self._topics = SegmentTopics()
        self._read_segments = 0
        self._context_tokens = 0
        self._seen_refreshes = memory.external_changes
        self._extracted_through: int | None = None
        # Segments that were folded without the model when facts were extracted from their turns.
        self._degraded: set[SegmentId] = set()
        self._last_check: int | None = None
        self._heard_through = memory.total_turns
        self._newcomers: set[str] = set()
        self._known: set[str] = set()
        self._store_failed = False

    # -- called by the room ----------------------------------------------------------------------------------

    def on_turn(self) -> None:
        """Called for each recorded turn: schedule a check for outside changes. Does not wait."""
        self._wake.set()

    def on_fold(self) -> None:
        """A batch was folded. Does not wait."""
        self._wake.set()

    def on_join(self, people: Iterable[str]) -> None:
        """People joined or were already present: load their facts. Does not wait."""
        self._newcomers.update(people)
        self._wake.set()

    def on_payload_sent(self, payload: Sequence[PayloadPart]) -> None:
        """A payload was sent to a model. Does not wait."""
        self._context_tokens = sum(part.tokens for part in payload)
        self._accesses.note_quotes(payload)
        self._sent_texts.note_payload(payload)
        if self._sent_texts.waiting:
            self._wake.set()

    def on_messages_sent(self, texts: Mapping[str, str]) -> None:
        """Messages, by digest, were sent to a model and are in no part of its prompt. Does not wait."""
        self._sent_texts.note_messages(texts)
        if self._sent_texts.waiting:
            self._wake.set()

    def participants(self, audience: Audience, present: Sequence[tuple[str, str]]) -> tuple[PayloadPart, ...]:
        """Return the prompt part about the people present, (id, display name). Does not wait."""
        return self._people.section(audience, present)

    def introductions(self, audience: Audience, present: Sequence[tuple[str, str]]) -> list[str]:
        """Return one line for each person present, (id, display name), for speech-to-speech. Does not wait."""
        return self._people.introductions(audience, present)

    async def refresh(self) -> None:
        """Take over at once what was changed in the store. A failing store is logged; the next run tries again. So is
        that another process has taken the session over: the room ends then.
        """
        try:
            await self._refresh_if_changed()
        except (StaleOwnerError, StoreError) as error:
            log.warning("memory_upkeep_failed", session_id=self._session_id, problem=error)
        self._wake.set()

    async def store_waiting(self) -> None:
        """Store what the store has refused so far, so that it can be deleted. Raises `StoreError` if it refuses again.

        If another process has taken the session over, nothing is stored: then what waits here never will be.
        """
        with suppress(StaleOwnerError):
            await self._memory.store_waiting()

    # -- the work ---------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Work until cancelled. *Cancellation* is safe at any point; the next run does what is left."""
        self._wake.set()
        while True:
            await self._wake.wait()
            self._wake.clear()
            await self.run_once()

    async def finish(self, *, within_s: float = 10.0) -> None:
        """Extract facts from the turns since the last fold, at the end of the session. Failures are only logged."""
        try:
            async with asyncio.timeout(within_s):
                await self.run_once(through=self._memory.total_turns)
        except TimeoutError:
            log.warning("memory_upkeep_late", session_id=self._session_id, within_s=within_s)

    async def run_once(self, *, through: int | None = None) -> None:
        """Do all due work once. `through`: extract facts from the turns before it (default: the folded turns).

        A failing store is logged once, and the next run does what is left. Raises `StaleOwnerError`.
        """
        through = self._memory.cursor if through is None else through
        try:
            await self._refresh_if_changed()
            await self._store_sent_texts()
            await self._load_newcomers()
            await self._extract_facts(through)
            await self._accesses.write()
            await self._check_if_due()
        except StaleOwnerError:
            raise
        except StoreError as error:
            if not self._store_failed:
                log.warning("memory_upkeep_failed", session_id=self._session_id, problem=error)
            self._store_failed = True
        except Exception as error:
            # A bug in this background work must not end a conversation.
            log.exception("memory_upkeep_broke", session_id=self._session_id, error_class=type(error).__name__)
        else:
            self._store_failed = False

    async def _store_sent_texts(self) -> None:
        for _ in range(_MOST_REFUSED):
            if not self._sent_texts.waiting:
                return
            if not await self._sent_texts.store(self._since_now()):
                # A fold has just landed, or something was forgotten: then these texts are dropped.
                await self._refresh_if_changed()

    async def _refresh_if_changed(self) -> None:
        """Reload the memory if another process changed the store, for example `roomtone memory forget`."""
        if await self._tiers.revision(self._session_id) > self._memory.state.revision:
            await self._memory.refresh()
        # The memory may have noticed the change first, when the store refused a fold.
        if self._memory.external_changes == self._seen_refreshes:
            return
        self._seen_refreshes = self._memory.external_changes
        log.info("memory_refreshed", session_id=self._session_id, revision=self._memory.state.revision)
        self._topics, self._read_segments = SegmentTopics(), 0
        self._sent_texts.on_forgotten()
        self._newcomers |= self._known

    def _since_now(self) -> Callable[[int], bool]:
        """Return a function that tells of a stored revision whether nobody but this session has changed it since."""
        changes = self._memory.external_changes
        return lambda revision: revision <= self._memory.state.revision and self._memory.external_changes == changes

    async def _load_newcomers(self) -> None:
        newcomers = set(self._newcomers)
        await self._people.prime(self._guild_id, newcomers)
        self._newcomers -= newcomers
        self._known |= newcomers

    async def _extract_facts(self, through: int) -> None:
        """Extract facts from every unprocessed batch before `through`."""
        if not self._people.enabled:
            return
        if self._extracted_through is None:
            self._extracted_through = await self._people.extracted_through(self._session_id)
        refused = 0
        while self._extracted_through < through and refused < _MOST_REFUSED:
            start, end = self._extracted_through, min(self._extracted_through + BATCH_SIZE, through)
            if await self._extract_from(start, end):
                self._extracted_through = end
            else:
                refused += 1
        await self._extract_repaired(self._extracted_through)

    async def _extract_repaired(self, through: int) -> None:
        """Extract the facts before `through` again whose segments the model has made since."""
        for segment in self._memory.segments:
            if segment.degraded:
                self._degraded.add(segment.id)
            elif segment.id in self._degraded and segment.end <= through:
                if not await self._extract_from(segment.start, segment.end, repaired=segment):
                    return
                self._degraded.discard(segment.id)

    async def _extract_from(self, start: int, end: int, *, repaired: Segment | None = None) -> bool:
        """Extract facts from these turns. Returns False if nothing was stored because the session has changed.

        `repaired`: the segment of these turns, which were processed before.
        """
        is_current = self._since_now()
        batch = await self._turns.turns(self._session_id, Seq(start), Seq(end))
        allowed = [self._memory.allowed_part(turn) for turn in batch]
        changed = {turn.seq for turn, left in zip(batch, allowed, strict=True) if left is not turn}
        known = self._facts_of(start, end, allowed) if repaired is None else known_facts_of(repaired)
        facts = [each for each in known if changed.isdisjoint(each.fact.turns)]
        if await self._people.extract(
            self._session_id,
            self._guild_id,
            facts,
            allowed,
            through=end,
            is_current=is_current,
            again=repaired is not None,
        ):
            return True
        # A fold has just landed, or something was forgotten: again later, from what is left.
        await self._refresh_if_changed()
        return False

    def _facts_of(self, start: int, end: int, batch: Sequence[Turn]) -> list[KnownFact]:
        """Return the facts of these turns: of their segments, or extracted if they are not folded."""
        if end <= self._memory.cursor:
            folded = [each for each in self._memory.segments if start < each.end and each.start < end]
            # While these facts are stored, a model may make the segments again.
            self._degraded.update(each.id for each in folded if each.degraded)
            known = (each for segment in folded for each in known_facts_of(segment))
            return [each for each in known if start <= each.fact.turns[-1] < end]
        # Not all facts: ten thousand turns have eight thousand, and other rooms wait meanwhile.
        extracted = extract_facts(batch, start=Seq(start), known=self._memory.known_facts)
        return [KnownFact(f"{self._session_id}:{start}-{end}#{index}", fact) for index, fact in enumerate(extracted)]

    # -- tiers ------------------------------------------------------------------------------------------------

    async def _check_if_due(self) -> None:
        if not self._settings.enabled:
            return
        if self._last_check is None:
            self._last_check = await self._tiers.last_check(self._session_id)
        total = self._memory.total_turns
        if not is_due(total, self._last_check):
            return
        if await self._tiers.is_frozen(self._session_id):
            self._last_check = total
            return
        begun = self._clock.monotonic()
        await self._read_new_segments()
        heard = last_mentions(self._topics, self._unread_turns())
        stored = await self._tiers.tiers_of(self._session_id, self._memory.segments)
        kept = [_with_mention(tier, heard) for tier in stored]
        done = check_tiers(
            kept,
            self._topics,
            total_turns=total,
            context_tokens=self._context_tokens,
            max_input_tokens=self._max_input_tokens,
            now=self._clock.now(),
        )
        changed = [
            each
            for each, before in zip(kept, stored, strict=True)
            if not before.known or each.last_mention != before.kept.last_mention
        ]
        await self._tiers.apply(self._session_id, done, changed, total_turns=total, now=self._clock.now())
        self._last_check = total
        self._heard_through = total
        self._log_check(done, kept, total, begun)

    async def _read_new_segments(self) -> None:
        folded = self._memory.segments
        while self._read_segments < len(folded):
            for segment in folded[self._read_segments : self._read_segments + _SLICE]:
                self._topics.add(segment)
            self._read_segments = min(self._read_segments + _SLICE, len(folded))
            await asyncio.sleep(0)

    def _unread_turns(self) -> list[Turn]:
        return [turn for turn in self._memory.turns if turn.seq >= self._heard_through]

    def _log_check(self, done: TierChanges, kept: Sequence[TieredSegment], total: int, begun: float) -> None:
        log.info(
            "tiers_checked",
            session_id=self._session_id,
            total_turns=total,
            segment_count=len(kept),
            context_share=round(self._context_tokens / max(1, self._max_input_tokens), 3),
            queued=len(done.queue),
            released=len(done.release),
            compressed=len(done.compress),
            archived=len(done.archive),
            in_archive=sum(each.tier is Tier.COLD for each in kept) + len(done.archive),
            tokens_before=done.tokens_before,
            tokens_after=done.tokens_after,
            duration_ms=round(1000 * (self._clock.monotonic() - begun), 1),
        )


def _with_mention(tier: StoredTier, heard: dict[SegmentId, int]) -> TieredSegment:
    kept = tier.kept
    last = heard.get(kept.segment.id)
    return kept if last is None or last <= kept.last_mention else replace(kept, last_mention=last)
