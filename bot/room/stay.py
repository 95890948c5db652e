"""The stay in one channel: from joining to leaving, with all that runs meanwhile beside the conversation.

`Session` opens the stored session and its memory before it, and ends them after it.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Final

import structlog

from bot import events
from bot.channel.port import ChatError, UnfinishedWords
from bot.health import ToldFaults, without_repeats
from bot.posts.captions import Captions
from bot.posts.live_message import LiveMessage
from bot.posts.notice import Announcer, NotAnnouncedError
from bot.room.attendance import AttendanceRecorder
from bot.room.leaving import EXPELLED, HANDED_OVER, NO_TRANSCRIPT, NOT_ANNOUNCED, PROCESS_ENDS, SessionLimits
from bot.room.membership import MembershipRecorder
from bot.room.room_faults import RoomFaults
from bot.room.room_status import UnfinishedSpeech, room_status
from bot.room.watches import ClaimWatch, ForgettingWatch, people_known
from bot.room.writing_down import listening_notice, new_writer, wanted_captions
from bot.texts.text import Text, sentence_of
from compaction.errors import StoreError
from compaction.log_events import MemoryEvent
from voice.cancellation import fail_if_cancelled_inside

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator
    from contextlib import AbstractAsyncContextManager
    from typing import Any

    from bot.channel.port import MembershipChange, VoiceConnection
    from bot.conversation.conversation import Conversation
    from bot.conversation.services import RoomContext
    from bot.health import HealthFault
    from bot.room.leaving import RoomEnding
    from bot.room_part import RoomPart
    from bot.screen.screen_room import RoomScreens

    Work = Callable[[], Coroutine[Any, Any, object]]

log = structlog.get_logger()

# How often an open room is measured, what waits is stored, and troubles and limits are looked for.
CHECK_ROOM_S: Final = 5.0
# How often Discord is asked what newcomers and what all people present may do.
CHECK_NEWCOMERS_S: Final = 2.0
REFRESH_RIGHTS_S: Final = 30.0


class RoomStay:
    """The stay of one session in its channel. `screens`: those that people share there; None: sharing is off.

    `opened`: set here once the bot receives sound. `ending`: asked to end. *Ownership*: the session runs `run`.
    """

    def __init__(
        self,
        session: RoomContext,
        conversation: Conversation,
        screens: RoomScreens | None,
        *,
        opened: asyncio.Event,
        ending: RoomEnding,
    ) -> None:
        channel, services, sessions = session.channel, session.services, session.services.memory.sessions
        self._session, self._channel, self._services, self._clock = session, channel, services, services.clock
        self._opened, self._ending = opened, ending
        self._conversation = conversation
        self._opened_at = self._clock.monotonic()
        self._connection: VoiceConnection | None = None
        # Nobody is heard before the notice is given, but for who has had it. The connection's thread reads this.
        self._notice_given_at: float | None = None
        self._shown_faults: list[HealthFault] = []
        self._told = ToldFaults()
        self._limits = SessionLimits(
            started_at=session.opened.session.started_at, leave_when_empty_s=services.leave_when_empty_s
        )
        self.unfinished, self._faults = UnfinishedSpeech(channel, session.words), RoomFaults(self._clock)
        self._claim_watch = ClaimWatch(sessions, session.opened.claim, self._clock)
        self._membership = MembershipRecorder(session, conversation.turn_recorder)
        self._attendance = AttendanceRecorder(
            channel,
            session.opened.session,
            sessions.attendance_for(session.opened.claim),
            words=session.words,
            clock=self._clock,
        )
        forgetting_watch = ForgettingWatch(
            sessions,
            session.id,
            session.words,
            people=partial(people_known, channel, session.timeline),
            clock=self._clock,
        )
        guild = session.guild
        live_message = LiveMessage(
            channel, doing=conversation.doing, costs=guild.costs, clock=self._clock, words=session.words
        )
        listen = session.listen if guild.listens_only else wanted_captions(session)
        self._announcer = Announcer(
            channel,
            listening_notice(session, listen),
            speak=conversation.speaking.speak_notice,
            clock=self._clock,
            consent=guild.consent,
            asks=guild.asks,
        )
        # In the order in which they end: the last words first, then what was shown meanwhile, and who was there.
        working = (conversation, screens, self._membership, self._attendance, session.upkeep)
        watching = (self._claim_watch, forgetting_watch, self.unfinished, self._faults)
        self._working: tuple[RoomPart, ...] = (*(each for each in working if each is not None), *watching)
        # They write what people read of it in the chat, and so end after the others.
        self._writer = new_writer(session, self._announcer)
        self._posting: tuple[RoomPart, ...] = (self._writer, live_message)

    @property
    def _parts(self) -> tuple[RoomPart, ...]:
        return (*self._working, *self._posting)

    # -- what others ask, once the room is open ---------------------------------------------------------------

    def status(self) -> Text:
        """Return what /status says."""
        session = self._session
        assert self._connection is not None, "the room is open"
        return room_status(
            self._channel,
            self._conversation,
            session.timeline,
            self._connection,
            tiers=None if session.upkeep is None else session.upkeep.tier_counts,
            open_s=self._clock.monotonic() - self._opened_at,
        )

    def unfinished_words(self) -> tuple[UnfinishedWords, ...]:
        """Return what people are saying, as far as it is recognised; the latest first."""
        return self.unfinished.words()

    def faults(self) -> list[HealthFault]:
        """Return why nobody is heard here, nobody hears the bot, or nothing is stored."""
        assert self._connection is not None, "the room is open"
        return self._faults.faults(self._connection, self._channel, speaks=not self._session.guild.listens_only)

    def on_captions_asked(self) -> None:
        """Somebody has asked for captions, or for none."""
        if isinstance(self._writer, Captions):
            self._writer.retry()

    def on_membership(self, change: MembershipChange) -> None:
        """Somebody came into the channel, or left it. Does not wait."""
        self._membership.on_change(change)
        self._conversation.on_membership(change)
        if change.joined:
            self._announcer.on_joined()
        if self._notice_given_at is not None:
            self._attendance.look()

    def on_event(self, event: events.Event) -> None:
        """Take note of what happens in the room."""
        for part in self._parts:
            part.on_event(event)

    # -- joining and leaving ----------------------------------------------------------------------------------

    def connection(self) -> AbstractAsyncContextManager[VoiceConnection]:
        """Return the voice connection, to be opened. Who has not had the notice is not heard over it."""
        return self._channel.connect(
            self._conversation.speaking.playback,
            self._conversation.hear,
            heard_since=self._heard_since,
            on_change=self._measure_connection,
            is_owner=self._claim_watch.is_owner,
        )

    async def run(self, connection: VoiceConnection) -> str:
        """Give the notice and run the room's tasks until it is asked to end. Return the reason."""
        self._connection = connection
        await self._announcer.begin()
        self._notice_given_at = self._clock.monotonic()
        self._attendance.look()
        async with asyncio.TaskGroup() as tasks:

            def started(works: Iterator[tuple[str, Work]]) -> list[asyncio.Task[None]]:
                return [tasks.create_task(fail_if_cancelled_inside(work), name=name) for name, work in works]

            working, writing = started(self._work(connection)), started(self._messages())
            self._on_opened()
            reason = await self._ending.wait()
            goes_on = reason == HANDED_OVER
            for part in self._working:
                await part.finish(goes_on=goes_on, process_ends=goes_on or reason == PROCESS_ENDS)
            await _cancel_all(working)
            # Not if another process goes on with the session: it would only begin when Discord has answered.
            for part in () if goes_on else self._posting:
                await part.finish()
            await _cancel_all(writing)
        self._measure(connection)
        return reason

    def _on_opened(self) -> None:
        stored, resumed = self._session.opened.session, self._session.opened.resumed
        self._opened_at = self._clock.monotonic()
        log.info(MemoryEvent.ROOM_OPENED, channel_id=self._channel.channel_id, resumed=resumed)
        self._opened.set()
        self._services.observe(
            events.RoomOpened(stored.id, self._channel.guild_id, self._channel.channel_id, resumed, self._opened_at)
        )
        if self._session.upkeep is not None:
            self._session.upkeep.on_join(str(person.id) for person in self._channel.members())

    def _work(self, connection: VoiceConnection) -> Iterator[tuple[str, Work]]:
        """Yield the room's tasks, each by its name and what it runs. `_messages` has those that write messages."""
        yield from ((part.task, part.run) for part in self._working if part.task)
        yield "room-check", partial(self._check, connection)
        yield "connection", partial(self._watch_connection, connection)
        yield "notices", partial(self._work_or_leave, self._announcer.run, NOT_ANNOUNCED)
        yield "rights", self._refresh_rights

    def _messages(self) -> Iterator[tuple[str, Work]]:
        """Yield the same of the tasks that write what people read in the chat."""
        writer, live_message = self._posting
        yield "written-down", partial(self._work_or_leave, writer.run, NO_TRANSCRIPT)
        if self._services.servers.of(self._channel.guild_id).live_message:
            yield "live-message", live_message.run

    def _heard_since(self, user_id: int) -> float | None:
        """Return since when a person may be heard, in monotonic seconds; None: they may not. Thread-safe."""
        agreed_at = self._session.guild.heard_since(user_id)
        if agreed_at is None or self._announcer.had_notice(user_id):
            return agreed_at
        return None if self._notice_given_at is None else max(agreed_at, self._notice_given_at)

    async def _work_or_leave(self, work: Work, reason: str) -> None:
        """Give the notice to people who come later, or write down what is said where the bot only listens. Leave where
        that is impossible: nobody may be heard who could not know it, and nobody wants to be heard for nothing.
        """
        try:
            await work()
        except (NotAnnouncedError, ChatError) as error:
            self._notice_given_at = None
            self._session.report(reason, error)
            await self._channel.write(Text("I am leaving. {why}", why=sentence_of(error)))
            self._ending.ask(reason)

    async def _watch_connection(self, connection: VoiceConnection) -> None:
        """Wait until the connection ends. End the room if somebody removed the bot, else raise `VoiceConnectionError`,
        or `StaleOwnerError` if another process has taken the room over: then Discord has ended this connection for
        that.
        """
        reason = await connection.lost()
        await self._claim_watch.check()
        if not connection.removed:
            raise reason
        self._ending.ask(EXPELLED)

    async def _refresh_rights(self) -> None:
        """Keep what the people present may do and read up to date: of newcomers soon, of everybody at intervals."""
        asked_at = float("-inf")
        while True:
            due = self._clock.monotonic() - asked_at >= REFRESH_RIGHTS_S
            if due:
                asked_at = self._clock.monotonic()
            await self._channel.refresh_rights(newcomers_only=not due)
            await self._attendance.store()
            await self._clock.sleep(CHECK_NEWCOMERS_S)

    # -- every few seconds --------------------------------------------------------------------------------------

    async def _check(self, connection: VoiceConnection) -> None:
        """Measure the room, store what waits, tell people of troubles. Returns when the session has reached a limit,
        and the room is asked to end.
        """
        is_over = False
        while not is_over:
            await self._clock.sleep(CHECK_ROOM_S)
            self._measure(connection)
            await self._membership.record_due()
            await self._store_waiting()
            await self._report_faults()
            if self._session.upkeep is not None:
                # It sees whether another process has changed the memory.
                self._session.upkeep.wake()
            is_over = await self._end_at_limit()

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

    async def _store_waiting(self) -> None:
        """Store what the database has refused before, if it takes it now."""
        timeline = self._session.timeline
        waiting = timeline.unstored_items
        try:
            await timeline.store_waiting()
        except StoreError as error:
            # The log has the first refusal.
            self._faults.unstored = error
            return
        if self._faults.unstored is not None:
            log.info("turns_stored_again", count=waiting)
        self._faults.unstored = None

    async def _report_faults(self) -> None:
        """Tell the dashboard what is wrong, and the channel what has begun or is over since the room is open."""
        faults = without_repeats([*self._services.process_faults(), *self.faults()])
        now = self._clock.monotonic()
        if faults != self._shown_faults:
            self._shown_faults = faults
            self._services.observe(events.FaultsFound(tuple(faults), now))
        # /status alone tells what was wrong before.
        news = [fault for fault in faults if fault.since is None or fault.since >= self._opened_at]
        for sentence in self._told.news(news, now):
            await self._channel.write(sentence)

    def _measure(self, connection: VoiceConnection) -> None:
        """Tell observers the state of the connection, and how much waits in the room's queues."""
        self._measure_connection()
        queues = [connection.queue, *(queue for part in self._parts for queue in part.queues)]
        self._services.observe(events.QueuesMeasured(tuple(queues), self._clock.monotonic()))

    def _measure_connection(self) -> None:
        """Tell observers the state of the connection, with its packet counters."""
        connection = self._connection
        if connection is not None:
            state = "connected" if connection.connected else "disconnected"
            counters, at = connection.counters().as_dict(), self._clock.monotonic()
            self._services.observe(events.ConnectionChanged(state, counters, at, connection.round_trip_s))


async def _cancel_all(tasks: list[asyncio.Task[None]]) -> None:
    """Cancel tasks and wait until they have ended."""
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks)
