"""What is done with a session's memory beside the conversation: facts about people are drawn from what was folded,
segments move between tiers, the archive is pruned.

The shell of `compaction.memory.tiers` and `compaction.memory.people`: it waits and stores, they decide. Nobody waits
for it, and what fails is tried again with the next occasion.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

import structlog

from compaction.errors import StoreError
from compaction.folding.window import BATCH_SIZE
from compaction.memory.tiers import (
    PRUNE_EVERY_TURNS,
    SegmentTopics,
    Tier,
    TierChanges,
    TieredSegment,
    check_tiers,
    is_due,
    last_mentions,
)
from compaction.model import Seq
from compaction.payload import PartKind, is_kept_as_sent, text_digest

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from bot.clock import Clock
    from bot.memory.access_log import AccessLog
    from bot.memory.people import PeopleBook
    from bot.store.prompts import PromptStore
    from bot.store.tier_rows import StoredTier
    from bot.store.tiers import TierStore
    from compaction.model import SegmentId, SessionId, Turn
    from compaction.payload import PayloadPart
    from compaction.ports import TurnStore
    from compaction.session import SessionMemory
    from compaction.settings import TierSettings

log = structlog.get_logger()

DAY_S = 24 * 3600.0
# Segments pruned at once beside a conversation: each costs some milliseconds of the write lock.
MOST_PRUNED = 15
# Segments of a long session that goes on are read in slices, so that the voices of the room are not kept waiting.
_SLICE = 25


class MemoryUpkeep:
    """Tends one session. Owned by its room, which runs `run` in a task and calls `finish` when the session ends."""

    def __init__(
        self,
        session_id: SessionId,
        guild_id: int | None,
        *,
        memory: SessionMemory,
        turns: TurnStore,
        shelf: TierStore,
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
        self._shelf = shelf
        self._people = people
        self._prompts = prompts
        self._accesses = accesses
        self._settings = settings
        self._clock = clock
        self._max_input_tokens = max_input_tokens
        self._wanted = asyncio.Event()
        self._subjects = SegmentTopics()
        self._read_segments = 0
        self._context_tokens = 0
        self._new_prompts: dict[str, str] = {}
        self._kept_prompts: set[str] = set()
        self._taken_over = memory.external_changes
        self._new_texts: dict[str, str] = {}
        # Those of the last payload: a text comes again at once or never.
        self._kept_texts: set[str] = set()
        self._drawn_through: int | None = None
        self._last_check: int | None = None
        self._last_prune = memory.total_turns
        self._heard_through = memory.total_turns
        self._newcomers: set[str] = set()
        self._known: set[str] = set()
        self._troubled = False

    # -- what the room tells ----------------------------------------------------------------------------------

    def turned(self) -> None:
        """A turn was recorded: what was forgotten meanwhile must not be told on. Returns at once."""
        self._wanted.set()

    def landed(self) -> None:
        """A batch was folded. Returns at once."""
        self._wanted.set()

    def came(self, people: Iterable[str]) -> None:
        """Somebody came in, or was here already: what is known of them is read. Returns at once."""
        self._newcomers.update(people)
        self._wanted.set()

    def sent(self, payload: Sequence[PayloadPart]) -> None:
        """A payload went to a model. Returns at once."""
        self._context_tokens = sum(part.tokens for part in payload)
        for part in payload:
            if part.kind is PartKind.SYSTEM and (digest := text_digest(part.content)) not in self._kept_prompts:
                self._new_prompts[digest] = part.content
                self._wanted.set()
            elif is_kept_as_sent(part) and (digest := text_digest(part.content)) not in self._kept_texts:
                self._new_texts[digest] = part.content
                self._wanted.set()

    def participants(self, present: Sequence[tuple[str, str]]) -> tuple[PayloadPart, ...]:
        """Return the part of a prompt about the people present, (id, display name). Returns at once."""
        return self._people.section(self._guild_id, present)

    def introductions(self, present: Sequence[tuple[str, str]]) -> list[str]:
        """Return a line on each person present, (id, display name), for spoken conversations. Returns at once."""
        return self._people.introductions(self._guild_id, present)

    # -- its work ---------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Tend the session, for ever. *Cancellation*: at any point; what is left is done next time."""
        self._wanted.set()
        while True:
            await self._wanted.wait()
            self._wanted.clear()
            await self.tend()

    async def finish(self, *, within_s: float = 10.0) -> None:
        """Draw what people said since the last fold: the session ends. Failures are told and cost only that."""
        try:
            async with asyncio.timeout(within_s):
                await self.tend(through=self._memory.total_turns)
        except TimeoutError:
            log.warning("keeping_late", session_id=self._session_id, within_s=within_s)

    async def tend(self, *, through: int | None = None) -> None:
        """Do once what is due. `through`: facts about people are drawn from the turns before it; the folded ones
        unless given. A store that fails is told of once, and what is left is done next time."""
        through = self._memory.cursor if through is None else through
        try:
            await self._keep_prompts()
            await self._take_over()
            await self._greet()
            await self._draw(through)
            await self._accesses.write()
            await self._check_if_due()
            await self._prune_if_due()
        except StoreError as error:
            if not self._troubled:
                log.warning("keeping_failed", session_id=self._session_id, problem=str(error))
            self._troubled = True
        except Exception as error:
            # A mistake in tending must not end a conversation.
            log.exception("keeping_broke", session_id=self._session_id, error_class=type(error).__name__)
        else:
            self._troubled = False

    async def _keep_prompts(self) -> None:
        if self._new_prompts:
            new = dict(self._new_prompts)
            await self._prompts.keep(new.values())
            self._kept_prompts.update(new)
            for digest in new:
                del self._new_prompts[digest]
        if self._new_texts:
            texts = dict(self._new_texts)
            await self._prompts.keep_sent(self._session_id, texts.values())
            self._kept_texts = set(texts)
            for digest in texts:
                del self._new_texts[digest]

    async def _take_over(self) -> None:
        """Notice what somebody else changed in the store: `roomtone memory forget` while the bot runs."""
        if await self._shelf.revision(self._session_id) > self._memory.state.revision:
            await self._memory.refresh()
        # A landing that was refused may have noticed it first.
        if self._memory.external_changes == self._taken_over:
            return
        self._taken_over = self._memory.external_changes
        log.info("memory_refreshed", session_id=self._session_id, revision=self._memory.state.revision)
        self._subjects, self._read_segments = SegmentTopics(), 0
        self._kept_texts.clear()
        self._newcomers |= self._known

    async def _greet(self) -> None:
        newcomers = set(self._newcomers)
        await self._people.prime(self._guild_id, newcomers)
        self._newcomers -= newcomers
        self._known |= newcomers

    async def _draw(self, through: int) -> None:
        """Draw from every batch before `through` that has not been drawn from yet."""
        if not self._people.enabled:
            return
        if self._drawn_through is None:
            self._drawn_through = await self._people.drawn_through(self._session_id)
        while self._drawn_through < through:
            end = min(self._drawn_through + BATCH_SIZE, through)
            batch = await self._turns.turns(self._session_id, Seq(self._drawn_through), Seq(end))
            await self._people.draw(self._session_id, self._guild_id, batch, through=end)
            self._drawn_through = end

    # -- tiers ------------------------------------------------------------------------------------------------

    async def _check_if_due(self) -> None:
        if not self._settings.enabled:
            return
        if self._last_check is None:
            self._last_check = await self._shelf.last_check(self._session_id)
        total = self._memory.total_turns
        if not is_due(total, self._last_check):
            return
        if await self._shelf.opted_out(self._session_id):
            self._last_check = total
            return
        begun = self._clock.monotonic()
        await self._read_new_segments()
        heard = last_mentions(self._subjects, self._unheard())
        standings = await self._shelf.tiers_of(self._session_id, self._memory.segments)
        kept = [_heard(standing, heard) for standing in standings]
        done = check_tiers(
            kept,
            self._subjects,
            total_turns=total,
            context_tokens=self._context_tokens,
            max_input_tokens=self._max_input_tokens,
            now=self._clock.now(),
        )
        changed = [
            each
            for each, before in zip(kept, standings, strict=True)
            if not before.known or each.last_mention != before.kept.last_mention
        ]
        await self._shelf.apply(self._session_id, done, changed, total_turns=total, now=self._clock.now())
        self._last_check = total
        self._heard_through = total
        self._tell(done, kept, total, begun)

    async def _read_new_segments(self) -> None:
        folded = self._memory.segments
        while self._read_segments < len(folded):
            for segment in folded[self._read_segments : self._read_segments + _SLICE]:
                self._subjects.add(segment)
            self._read_segments = min(self._read_segments + _SLICE, len(folded))
            await asyncio.sleep(0)

    def _unheard(self) -> list[Turn]:
        return [turn for turn in self._memory.turns if turn.seq >= self._heard_through]

    def _tell(self, done: TierChanges, kept: Sequence[TieredSegment], total: int, begun: float) -> None:
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

    async def _prune_if_due(self) -> None:
        total = self._memory.total_turns
        if not self._settings.enabled or not is_due(total, self._last_prune, every=PRUNE_EVERY_TURNS):
            return
        self._last_prune = total
        begun = self._clock.monotonic()
        pruned, deleted = await prune(self._shelf, self._settings, now=self._clock.now(), most=MOST_PRUNED)
        log.info(
            "archive_pruned",
            session_id=self._session_id,
            pruned=pruned,
            sessions_deleted=len(deleted),
            duration_ms=round(1000 * (self._clock.monotonic() - begun), 1),
        )


async def prune(
    shelf: TierStore, settings: TierSettings, *, now: float, most: int | None = None
) -> tuple[int, tuple[SessionId, ...]]:
    """Delete the sessions whose retention is over, then prune the archived segments whose time is, at most `most`;
    return how many segments, and which sessions. `now`: UTC epoch seconds. Raises `StoreError`."""
    deleted: tuple[SessionId, ...] = ()
    if settings.retention_days is not None:
        deleted = await shelf.delete_expired_sessions(ended_before=now - settings.retention_days * DAY_S)
    outdated = await shelf.archived(before=now - settings.prune_after_days * DAY_S, most=most)
    return await shelf.prune(outdated, now=now), deleted


def _heard(standing: StoredTier, heard: dict[SegmentId, int]) -> TieredSegment:
    kept = standing.kept
    last = heard.get(kept.segment.id)
    return kept if last is None or last <= kept.last_mention else replace(kept, last_mention=last)
