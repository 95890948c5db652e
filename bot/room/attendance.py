"""Records who is in a room's channel, and when. `bot.viewers` decides by it who may read what was said.

Bots, people who opted out, and people who were asked and have not agreed have no attendance.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import structlog

from bot.room_part import RoomPart
from bot.store.attendance import AttendanceStore, Presence
from compaction.errors import StoreError

if TYPE_CHECKING:
    from bot.channel.port import RoomChannel
    from bot.clock import Clock
    from bot.store.sessions import StoredSession
    from bot.words import Words

log = structlog.get_logger()

# How often it is looked whose attendance was deleted although they are there: they asked to be forgotten.
MEND_EVERY_S = 60.0
# While the database is away. Beyond them all are dropped, and it is stored who is there then, as after a crash: an end
# that is dropped alone would leave a stay open.
MOST_WAITING = 10_000


class AttendanceRecorder(RoomPart):
    """The attendance of one room. `words`: those of the session; who is excluded is not recorded.

    *Ownership*: the room calls `look` when somebody comes or goes, `store` every few seconds, and `finish` at its end.
    """

    def __init__(
        self,
        channel: RoomChannel,
        session: StoredSession,
        store: AttendanceStore,
        *,
        words: Words,
        clock: Clock,
    ) -> None:
        self._channel = channel
        self._session = session
        self._store = store
        self._words = words
        self._clock = clock
        self._present: frozenset[str] = frozenset()
        self._waiting: list[Presence] = []
        # Whether the stays that an earlier room of the session has left open were ended. Who was there at first.
        self._resumed = False
        self._first: frozenset[str] | None = None
        self._mended_at = clock.monotonic()
        # The room may end while `store` waits for the database.
        self._one_at_a_time = asyncio.Lock()

    def look(self) -> None:
        """Note who has come and gone since the last look. Does not wait."""
        people = (each for each in self._channel.members() if not each.is_bot and not self._words.excludes(each.id))
        self._note(frozenset(str(each.id) for each in people))

    def _note(self, here: frozenset[str]) -> None:
        now = self._clock.now()
        if self._first is None:
            self._first = here
        self._waiting.extend(Presence(each, now, joined=False) for each in sorted(self._present - here))
        self._waiting.extend(Presence(each, now, joined=True) for each in sorted(here - self._present))
        self._present = here
        if len(self._waiting) > MOST_WAITING:
            log.warning("attendance_dropped", count=len(self._waiting))
            self._waiting, self._first, self._resumed = [], here, False

    async def store(self) -> None:
        """Look, and store what was noted. A failure is logged, and tried again at the next call.

        Raises `StaleOwnerError`.
        """
        self.look()
        await self._write(mends=True)

    async def finish(self, *, goes_on: bool = False, process_ends: bool = False) -> None:
        """Store what is left. `goes_on`: another room goes on with the session; else everybody's stay ends with it."""
        if goes_on:
            self.look()
        else:
            self._note(frozenset())
        await self._write(mends=False)

    async def _write(self, *, mends: bool) -> None:
        try:
            async with self._one_at_a_time:
                await self._resume()
                if mends:
                    await self._mend()
                await self._store_waiting()
        except StoreError as error:
            log.warning("attendance_not_stored", problem=error, waiting=len(self._waiting))

    async def _resume(self) -> None:
        if not self._resumed:
            await self._store.resume(self._session.id, self._first or (), at=self._session.last_turn_at)
            self._resumed = True

    async def _mend(self) -> None:
        now = self._clock.monotonic()
        if now - self._mended_at < MEND_EVERY_S:
            return
        self._mended_at = now
        lost = self._present - await self._store.present(self._session.id) - {each.person_id for each in self._waiting}
        self._waiting.extend(Presence(each, self._clock.now(), joined=True) for each in sorted(lost))

    async def _store_waiting(self) -> None:
        noted, self._waiting = self._waiting, []
        # Whoever has opted out since they came has no attendance at all.
        changes = [each for each in noted if not (each.joined and self._words.excludes(int(each.person_id)))]
        try:
            if changes:
                await self._store.add(self._session.id, changes)
        except BaseException:
            self._waiting = noted + self._waiting
            raise
