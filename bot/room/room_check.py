"""Checks an open room at intervals: measures it, stores what waits, tells people of troubles, and ends it at a limit.

`room_troubles` and `SessionLimits` decide what is a fault, what people are told, and what a limit is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import structlog

from bot import events
from bot.room.endings import EMPTY, LONGEST
from bot.room.room_troubles import RoomFaults, RoomTroubles
from bot.texts.text import Text, counted
from compaction.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable

    from bot.channel.port import Link, Place
    from bot.health import HealthFault
    from bot.room.attendance import AttendanceRecorder
    from bot.room.conversation.conversation import Conversation
    from bot.room.endings import RoomEnding
    from bot.room.services import RoomServices, SessionParts
    from bot.room.transcript_writer import TranscriptWriter
    from bot.screen.room import RoomScreens
    from bot.server_settings import ServerSettings

log = structlog.get_logger()

CHECK_ROOM_S = 5.0
GPU_FAILED = Text("My GPU has failed, so I recognise speech on the processor, which takes longer. /status says why.")


@dataclass(frozen=True, slots=True)
class ReachedLimit:
    """Why a session ends by itself. `reason`: the word for the log. `sentence`: what people are told, if
    anybody is left to read it.
    """

    reason: str
    sentence: Text | None = None


class SessionLimits:
    """The limits of one session. `started_at`: when it began, in UTC epoch seconds; a room may have resumed it.

    `leave_when_empty_s`: how long the bot stays alone where the server has not chosen.
    """

    def __init__(self, *, started_at: float, leave_when_empty_s: float) -> None:
        self._started_at = started_at
        self._leave_when_empty_s = leave_when_empty_s
        self._alone_since: float | None = None

    def check(self, settings: ServerSettings, *, accompanied: bool, epoch: float, now: float) -> ReachedLimit | None:
        """Return the limit that is reached, or None. `settings`: what the server has chosen by now. `accompanied`:
        people are in the channel. `epoch`: UTC seconds. `now`: monotonic seconds.
        """
        longest_h = settings.longest_session_h
        if longest_h is not None and epoch - self._started_at >= longest_h * 3600:
            return ReachedLimit(LONGEST, _too_long(longest_h))
        if accompanied:
            self._alone_since = None
            return None
        if self._alone_since is None:
            self._alone_since = now
        alone_s = now - self._alone_since
        return ReachedLimit(EMPTY) if alone_s >= (settings.leave_when_empty_s or self._leave_when_empty_s) else None


def _too_long(longest_h: float) -> Text:
    return Text(
        "This session has lasted {hours}, as long as one may on this server, so I end it and leave. What was said "
        "stays remembered; /join begins a new one.",
        hours=counted(longest_h, "{count} hour", "{count} hours"),
    )


class RoomCheck:
    """The check of one room in `place`. `attendance`: has it stored. `writer`: of the room's transcript, if it has one.
    `report`: called with the place in the code and the error of each problem.

    *Ownership*: `run` is a task of the room, whose events all go to `on_event`.
    """

    def __init__(
        self,
        place: Place,
        services: RoomServices,
        session: SessionParts,
        conversation: Conversation,
        *,
        attendance: AttendanceRecorder,
        writer: TranscriptWriter | None,
        screens: RoomScreens | None,
        ending: RoomEnding,
        report: Callable[[str, Exception], None],
    ) -> None:
        self._place = place
        self._services = services
        self._clock = services.clock
        self._session = session
        self._conversation = conversation
        self._attendance = attendance
        self._writer = writer
        self._screens = screens
        self._ending = ending
        self._report = report
        self._faults = RoomFaults()
        self._troubles = RoomTroubles()
        self._limits = SessionLimits(
            started_at=session.opened.session.started_at, leave_when_empty_s=services.leave_when_empty_s
        )
        # A failure from before the room is told by /status.
        self._gpu_failed = services.speech.gpu_failure() is not None

    def on_event(self, event: events.Event) -> None:
        """Take note of one of the room's events."""
        self._faults.on_event(event)

    def faults(self, link: Link) -> list[HealthFault]:
        """Return why nobody is heard here, nobody hears the bot, or nothing is stored."""
        speaks = self._session.listen is None
        return self._faults.faults(link, self._place, speaks=speaks, now=self._clock.monotonic())

    async def run(self, link: Link) -> None:
        """Look every `CHECK_ROOM_S` seconds. Returns when the session has reached a limit, and the room is asked to
        end.
        """
        is_over = False
        while not is_over:
            await self._clock.sleep(CHECK_ROOM_S)
            self.measure(link)
            await self._conversation.membership.record_due()
            await self._attendance.store()
            await self._store_waiting()
            await self._tell_gpu_failure()
            await self._tell_troubles()
            if self._session.upkeep is not None:
                # It sees whether another process has changed the memory.
                self._session.upkeep.wake()
            is_over = await self._end_at_limit()

    async def _end_at_limit(self) -> bool:
        """Ask the room to end, if the session has reached a limit. Return whether it has."""
        chosen = self._services.servers.of(self._place.guild_id)
        accompanied = any(not person.is_bot for person in self._place.members())
        now = self._clock.monotonic()
        reached = self._limits.check(chosen, accompanied=accompanied, epoch=self._clock.now(), now=now)
        if reached is None:
            return False
        if reached.sentence is not None:
            await self._place.write(reached.sentence)
        self._ending.ask(reached.reason)
        return True

    async def _store_waiting(self) -> None:
        """Store what the database has refused before, if it takes it now."""
        memory = self._session.memory
        waiting = memory.unstored_items
        try:
            await memory.store_waiting()
        except StoreError:
            # The log has the first refusal.
            self._faults.unstored = True
            return
        if self._faults.unstored:
            log.info("turns_stored_again", count=waiting)
        self._faults.unstored = False

    async def _tell_gpu_failure(self) -> None:
        """Tell the channel once if the GPU has failed while the room is open, because texts come later from then on."""
        failure = self._services.speech.gpu_failure()
        if self._gpu_failed or failure is None:
            return
        self._gpu_failed = True
        self._report("recogniser", failure)
        await self._place.write(GPU_FAILED)

    async def _tell_troubles(self) -> None:
        """Tell the channel of a trouble that has begun or is over."""
        answers = self._session.listen is None
        for sentence in self._troubles.next(
            not_understanding=self._faults.understands_nobody,
            muted=answers and self._place.muted,
            suppressed=answers and not self._place.audible and not self._place.muted,
            deafened=self._place.deafened,
            now=self._clock.monotonic(),
        ):
            await self._place.write(sentence)

    # -- measuring ------------------------------------------------------------------------------------------------

    def measure(self, link: Link) -> None:
        """Tell the state of the connection, and how much waits in the room's queues."""
        self.measure_link(link)
        queues = [link.queue, *self._conversation.queues]
        if self._writer is not None:
            queues.append(self._writer.queue)
        if self._screens is not None:
            queues.append(self._screens.queue)
        self._services.observe(events.QueuesMeasured(tuple(queues), self._clock.monotonic()))

    def measure_link(self, link: Link) -> None:
        """Tell the state of the connection, with its packet counters."""
        self._services.observe(
            events.LinkChanged(
                "connected" if link.connected else "disconnected",
                link.counters().as_dict(),
                self._clock.monotonic(),
                link.round_trip_s,
            )
        )
