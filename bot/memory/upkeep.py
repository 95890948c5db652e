"""Background work on a session's memory: takes over changes of others, extracts facts about people, checks tiers.

Stores sent prompts. `people` decides which facts are kept, and `tier_checks` moves segments. The conversation never
waits for it, and failed work is retried at the next occasion.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING

import structlog

from bot.memory.tier_checks import TierChecks
from bot.room_part import RoomPart
from bot.words import SESSION, Leased, Words
from compaction.errors import StaleOwnerError, StoreError
from compaction.log_events import MemoryEvent
from compaction.model import Seq, SessionId
from compaction.summary.folded import known_facts_of
from compaction.window import BATCH_SIZE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from bot.clock import Clock
    from bot.memory.access_log import AccessLog
    from bot.memory.people import PeopleBook
    from bot.store.prompts import PromptStore, SentPrompt
    from bot.store.tiers import TierStore
    from compaction.payload import PayloadPart
    from compaction.ports import TurnStore
    from compaction.session import SessionTimeline

log = structlog.get_logger()

# How often in one run prompts are stored, or facts extracted, again, because the session changed meanwhile.
_MOST_REFUSED = 3
# Prompts that wait for the store. They are only looked at, so more are not kept.
_MOST_PROMPTS = 20


class MemoryUpkeep(RoomPart):
    """The background work of one session. Its room runs `run` in a task and calls `finish` when the session ends.

    `people`: the facts about people that may be told in this session. `tier_checks`: how far what was folded has moved
    on.
    """

    task = "memory-upkeep"

    def __init__(
        self,
        session_id: SessionId,
        guild_id: int | None,
        *,
        timeline: SessionTimeline,
        words: Words,
        turns: TurnStore,
        tiers: TierStore,
        people: PeopleBook,
        prompts: PromptStore,
        accesses: AccessLog,
        clock: Clock,
        max_input_tokens: int,
    ) -> None:
        self._session_id = session_id
        self._guild_id = guild_id
        self._timeline = timeline
        self._turns = turns
        self._tiers = tiers
        self.people = people
        self._accesses = accesses
        self._words = words
        # That of the last change by others that was taken over.
        self._epoch = words.epoch
        self._prompt_store = prompts
        self._prompts: deque[Leased[SentPrompt]] = deque(maxlen=_MOST_PROMPTS)
        # The first turn from which no fact was extracted; None until it is read from the store.
        self._extracted_through: int | None = None
        self.tier_checks = TierChecks(session_id, timeline, tiers, clock=clock, max_input_tokens=max_input_tokens)
        self._wake = asyncio.Event()
        # People whose facts are to be loaded, and those whose are.
        self._newcomers: set[str] = set()
        self._known: set[str] = set()
        self._store_failed = False

    # -- called by the room ----------------------------------------------------------------------------------

    def wake(self) -> None:
        """A turn was recorded, or a batch was folded: look for work. Does not wait."""
        self._wake.set()

    def on_join(self, people: Iterable[str]) -> None:
        """People joined or were already present: load their facts. Does not wait."""
        self._newcomers.update(people)
        self._wake.set()

    def on_payload_sent(self, payload: Sequence[PayloadPart]) -> None:
        """A payload was sent to a model. Does not wait."""
        self.tier_checks.context_tokens = sum(part.tokens for part in payload)
        self._accesses.note_quotes(payload, self._session_id, from_seq=self._timeline.total_turns)

    def on_prompt_sent(self, prompt: SentPrompt) -> None:
        """A model call was sent: have it stored. Does not wait. If the store is away for long, the newest are kept."""
        self._prompts.append(Leased(prompt, self._words.lease({SESSION, *prompt.people}, since=None)))
        self._wake.set()

    def has_turns_of(self, person_id: str) -> bool:
        """Return whether turns in memory have a part of somebody, such as that they came."""
        return any(part.speaker_id == person_id for turn in self._timeline.turns for part in turn.parts)

    async def refresh(self) -> None:
        """Take over at once what was changed in the store. A failing store is logged; the next run tries again. So is
        that another process has taken the session over: the room ends then.
        """
        try:
            # Also if nothing in this session has changed: the store learns until when who was forgotten has spoken.
            await self._timeline.refresh()
            await self._take_over()
        except (StaleOwnerError, StoreError) as error:
            log.warning(MemoryEvent.UPKEEP_FAILED, session_id=self._session_id, problem=error)
        self._wake.set()

    async def store_waiting(self) -> None:
        """Store what the store has refused so far, so that it can be deleted. Raises `StoreError` if it refuses again.

        If another process has taken the session over, nothing is stored: then what waits here never will be.
        """
        with suppress(StaleOwnerError):
            await self._timeline.store_queue.flush()
            await self._accesses.write()

    # -- the work ---------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Work until cancelled. *Cancellation* is safe at any point; the next run does what is left."""
        self._wake.set()
        while True:
            await self._wake.wait()
            self._wake.clear()
            await self.run_once()

    async def complete(self, *, within_s: float = 10.0) -> None:
        """Do at the end of the session what is left. A failing store and a late end are only logged.

        Raises `StaleOwnerError`.
        """
        try:
            async with asyncio.timeout(within_s):
                await self.run_once()
        except TimeoutError:
            log.warning(MemoryEvent.UPKEEP_LATE, session_id=self._session_id, within_s=within_s)

    async def run_once(self) -> None:
        """Do all due work once.

        A failing store is logged once, and the next run does what is left. Raises `StaleOwnerError`.
        """
        try:
            for _ in range(_MOST_REFUSED):
                await self._take_over()
                await self._load_newcomers()
                if await self._store_prompts() and await self._extract_facts():
                    break
            await self._accesses.write()
            await self.tier_checks.check_if_due()
        except StaleOwnerError:
            raise
        except StoreError as error:
            if not self._store_failed:
                log.warning(MemoryEvent.UPKEEP_FAILED, session_id=self._session_id, problem=error)
            self._store_failed = True
        except Exception as error:
            # A bug in this background work must not end a conversation.
            log.exception(MemoryEvent.UPKEEP_BROKE, session_id=self._session_id, error_class=type(error).__name__)
        else:
            self._store_failed = False

    async def _store_prompts(self) -> bool:
        """Store the prompts that wait. Returns False if none was stored because the session has changed."""
        waiting = tuple(self._prompts)
        prompts = tuple(prompt for each in waiting if (prompt := each.take()) is not None)
        if prompts and not await self._prompt_store.store(prompts, is_current=self._unchanged_since_now()):
            return False
        while self._prompts and self._prompts[0] in waiting:
            self._prompts.popleft()
        return True

    async def _load_newcomers(self) -> None:
        newcomers = set(self._newcomers)
        await self.people.prime(self._guild_id, newcomers)
        self._newcomers -= newcomers
        self._known |= newcomers

    # -- changes by others -------------------------------------------------------------------------------------

    async def _take_over(self) -> None:
        """Reload the memory if others have changed the session in the store, for example `roomtone memory forget`.

        Raises `StoreError`, and `StaleOwnerError` if another process has taken the session over.
        """
        if await self._tiers.revision(self._session_id) > self._timeline.state.revision:
            await self._timeline.refresh()
        # The memory may have noticed the change first, when the store refused a fold.
        if self._words.epoch == self._epoch:
            return
        self._epoch = self._words.epoch
        log.info(MemoryEvent.MEMORY_REFRESHED, session_id=self._session_id, revision=self._timeline.state.revision)
        self.tier_checks.on_outside_change()
        self._newcomers |= self._known

    def _unchanged_since_now(self) -> Callable[[int], bool]:
        """Return a function that tells of a stored revision whether nobody but this session has changed it since."""
        lease = self._words.lease({SESSION}, since=None)
        return lambda revision: revision <= self._timeline.state.revision and lease.valid

    # -- facts about people ------------------------------------------------------------------------------------

    async def _extract_facts(self) -> bool:
        """Extract facts from every folded batch once. Returns False if the session has changed: a fold has just landed,
        or something was forgotten. Raises `StoreError`.
        """
        if not self.people.enabled:
            return True
        if self._extracted_through is None:
            self._extracted_through = await self.people.store.extracted_through(self._session_id)
        while self._extracted_through < self._timeline.cursor:
            end = min(self._extracted_through + BATCH_SIZE, self._timeline.cursor)
            if not await self._extract_from(self._extracted_through, end):
                return False
            self._extracted_through = end
        return True

    async def _extract_from(self, start: int, end: int) -> bool:
        """Extract facts from these turns. Returns False if nothing was stored because the session has changed."""
        is_current = self._unchanged_since_now()
        batch = await self._turns.turns(self._session_id, Seq(start), Seq(end))
        allowed = [self._timeline.allowed_part(turn) for turn in batch]
        changed = {turn.seq for turn, left in zip(batch, allowed, strict=True) if left is not turn}
        known = [each for segment in self._timeline.compactor.segments for each in known_facts_of(segment)]
        facts = [each for each in known if start <= each.fact.turns[-1] < end and changed.isdisjoint(each.fact.turns)]
        closed = {ref for each in facts for ref in each.fact.closes}
        return await self.people.extract(
            self._session_id,
            self._guild_id,
            facts,
            allowed,
            through=end,
            is_current=is_current,
            superseded={each.ref: each.fact for each in known if each.ref in closed},
        )
