"""Looks at an open room every few seconds: measures it, stores what waits, tells of troubles, ends it at a limit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import structlog

from bot import events
from bot.health import ToldFaults, without_repeats
from bot.room.leaving import SessionLimits
from compaction.errors import StoreError

if TYPE_CHECKING:
    from bot.channel.port import VoiceConnection
    from bot.health import HealthFault
    from bot.room.assemble import RoomParts
    from bot.room.leaving import RoomEnding

log = structlog.get_logger()

CHECK_ROOM_S: Final = 5.0


def connection_state(connection: VoiceConnection, now: float) -> events.ConnectionChanged:
    """Return the state of a connection, with its packet counters. `now`: monotonic seconds."""
    state = "connected" if connection.connected else "disconnected"
    return events.ConnectionChanged(state, connection.counters().as_dict(), now, connection.round_trip_s)


class RoomCheck:
    """The checks of one room, from when it opens. `ending`: is asked for when the session has reached a limit.

    *Ownership*: the room runs `run` in a task.
    """

    def __init__(self, parts: RoomParts, connection: VoiceConnection, ending: RoomEnding) -> None:
        session = parts.session
        self._parts, self._connection, self._ending = parts, connection, ending
        self._session, self._channel, self._services = session, session.channel, session.services
        self._clock = self._services.clock
        self._began_at = self._clock.monotonic()
        self._shown_faults: list[HealthFault] = []
        self._told = ToldFaults()
        self._limits = SessionLimits(
            started_at=session.opened.session.started_at, leave_when_empty_s=self._services.leave_when_empty_s
        )

    async def run(self) -> None:
        """Check at intervals. Returns when the session has reached a limit, and the room is asked to end."""
        is_over = False
        while not is_over:
            await self._clock.sleep(CHECK_ROOM_S)
            self.measure()
            await self._parts.membership.record_due()
            await self._store_waiting()
            await self._report_faults()
            if self._session.upkeep is not None:
                # It sees whether another process has changed the memory.
                self._session.upkeep.wake()
            is_over = await self._end_at_limit()

    def measure(self) -> None:
        """Tell observers the state of the connection, and how much waits in the room's queues."""
        parts, now = (*self._parts.working, *self._parts.posting), self._clock.monotonic()
        self._services.observe(connection_state(self._connection, now))
        queues = (self._connection.queue, *(queue for part in parts for queue in part.queues))
        self._services.observe(events.QueuesMeasured(queues, now))

    async def _store_waiting(self) -> None:
        """Store what the database has refused before, if it takes it now."""
        timeline, faults = self._session.timeline, self._parts.faults
        waiting = timeline.unstored_items
        try:
            await timeline.store_waiting()
        except StoreError as error:
            # The log has the first refusal.
            faults.unstored = error
            return
        if faults.unstored is not None:
            log.info("turns_stored_again", count=waiting)
        faults.unstored = None

    async def _report_faults(self) -> None:
        """Tell the dashboard what is wrong, and the channel what has begun or is over since the room is open."""
        faults = without_repeats([*self._services.process_faults(), *self._parts.found_faults(self._connection)])
        now = self._clock.monotonic()
        if faults != self._shown_faults:
            self._shown_faults = faults
            self._services.observe(events.FaultsFound(tuple(faults), now))
        # /status alone tells what was wrong before.
        news = [fault for fault in faults if fault.since is None or fault.since >= self._began_at]
        for sentence in self._told.news(news, now):
            await self._channel.write(sentence)

    async def _end_at_limit(self) -> bool:
        """Ask the room to end, if the session has reached a limit. Return whether it has."""
        reached = self._limits.check(
            self._services.servers.of(self._channel.guild_id),
            accompanied=any(not person.is_bot for person in self._channel.members()),
            epoch=self._clock.now(),
            now=self._clock.monotonic(),
        )
        if reached is None:
            return False
        if reached.sentence is not None:
            await self._channel.write(reached.sentence)
        self._ending.ask(reached.reason)
        return True
