"""Watches what other processes have done on the database of a room: taken the server over, or forgotten somebody.

The store itself keeps what is forgotten from coming back (`bot.store.forgettings`). What a model or people would still
get of it is dropped here: speech that has no text yet, pictures of a screen, the reply in progress.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

import structlog

from bot.room_part import RoomPart
from compaction.errors import StaleOwnerError, StoreError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bot.channel.port import RoomChannel
    from bot.clock import Clock
    from bot.store.claims import RoomClaim
    from bot.store.forgettings import Forgetting
    from bot.store.sessions import Sessions
    from bot.words import Words
    from compaction.session import SessionTimeline

log = structlog.get_logger()

# How long a room may take to find out, with its answer: less than `bot.store.forgettings._TAKEN_OVER_S`.
CHECK_FORGETTINGS_S = 5.0
# How long a room in which nobody says anything may take to find out that it was taken over.
CHECK_CLAIM_S = 5.0
# A database that answers later is left alone until the next check. Nobody is forgotten while it is away.
ANSWER_WITHIN_S = 1.0


class ClaimWatch(RoomPart):
    """The watch of one room over its `claim`. *Ownership*: the room runs `run` in a task."""

    task = "claim"

    def __init__(self, sessions: Sessions, claim: RoomClaim, clock: Clock) -> None:
        self._sessions = sessions
        self._claim = claim
        self._clock = clock

    async def run(self) -> None:
        """Check at intervals. Never returns. Raises `StaleOwnerError` once another process runs the server's room."""
        while True:
            await self._clock.sleep(CHECK_CLAIM_S)
            await self.check()

    async def check(self) -> None:
        """Raise `StaleOwnerError` if another process runs the server's room now."""
        # A room whose database does not answer goes on; `RoomFaults` tells of that.
        with suppress(StoreError, TimeoutError):
            async with asyncio.timeout(ANSWER_WITHIN_S):
                await self._sessions.check(self._claim)

    async def is_owner(self) -> bool:
        """Return whether the room may change the bot's voice state: a stale room's leaving would deafen the new one."""
        try:
            await self.check()
        except StaleOwnerError:
            return False
        return True


class ForgettingWatch(RoomPart):
    """The watch of one room, over the people in `channel` and those whose turns are in memory.

    `seen`: the number of the last forgetting before the room opened its session.

    *Ownership*: the room runs `run` in a task.
    """

    task = "forgettings"

    def __init__(
        self,
        sessions: Sessions,
        timeline: SessionTimeline,
        words: Words,
        channel: RoomChannel,
        *,
        seen: int,
        clock: Clock,
    ) -> None:
        self._sessions = sessions
        self._timeline = timeline
        self._words = words
        self._channel = channel
        self._clock = clock
        self._seen = seen
        self._checked_at = clock.monotonic()
        # Who was there or in memory at any check: what is forgotten leaves the memory.
        self._known: set[str] = set()

    async def run(self) -> None:
        """Look now and at intervals. Never returns."""
        while True:
            await self.check()
            await self._clock.sleep(CHECK_FORGETTINGS_S)

    async def check(self) -> None:
        """Drop what the room has of people who were forgotten since the last check."""
        began_at = self._clock.monotonic()
        self._known.update(str(person.id) for person in self._channel.members())
        self._known.update(part.speaker_id for turn in self._timeline.turns for part in turn.parts)
        with suppress(StoreError, TimeoutError):
            async with asyncio.timeout(ANSWER_WITHIN_S):
                found = await self._sessions.forgettings_after(self._seen)
            self._take_back(found)
            if found:
                # Also of people whom the room does not know: their turns may be folded, and what people have said until
                # the store learns it counts as said before they were forgotten.
                await self._timeline.refresh()
            self._seen = max([self._seen, *(each.number for each in found)])
            self._checked_at = began_at

    def _take_back(self, found: Iterable[Forgetting]) -> None:
        here = [each for each in found if each.reaches(self._timeline.session_id)]
        count, people = 0, set[str]()
        for person_id, theirs in self._sessions.people_among(here, self._known).items():
            # One turn is stored, so nothing of it is on its way into the store.
            if person_id.isdecimal() and any(each.seq is None for each in theirs):
                if self._words.taken_back_at(int(person_id)) >= self._checked_at:
                    # They took them back in this process, which has told the room already.
                    continue
                people.add(person_id)
            count += 1
        if count:
            # Without their ids, which would bring them back into the log.
            log.info("forgotten_elsewhere", count=count)
            self._words.take_back(people, turns=True)
