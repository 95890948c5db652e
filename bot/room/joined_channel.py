"""The channel that a room has joined: its voice connection, the notice, the room's tasks, and leaving in order.

`bot.room.room` opens and ends the session around it. `room_check` sees to it at intervals.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING

from bot.background_task import background_task
from bot.channel.port import ChatError
from bot.errors import first_cause
from bot.room.announcer import Announcer, NotAnnouncedError
from bot.room.attendance import AttendanceRecorder
from bot.room.endings import EXPELLED, HANDED_OVER, NO_TRANSCRIPT, NOT_ANNOUNCED, PROCESS_ENDS
from bot.room.live_message import LiveMessage
from bot.room.other_processes import ClaimWatch, ForgettingWatch
from bot.room.room_check import RoomCheck
from bot.room.transcript_writer import transcript_writer
from bot.screen.messages import ShareEnd
from bot.texts.text import Text, sentence_of
from compaction.errors import StaleOwnerError
from voice.cancellation import fail_if_cancelled_inside
from voice.errors import RemovedFromChannelError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Iterator
    from contextlib import AbstractAsyncContextManager
    from typing import Any

    from bot import events
    from bot.channel.port import Link, MembershipChange, Place
    from bot.errors import BotError
    from bot.health import HealthFault
    from bot.room.conversation.conversation import Conversation
    from bot.room.endings import RoomEnding
    from bot.room.membership_queue import MembershipQueue
    from bot.room.services import RoomServices, RoomSession
    from bot.room.transcript_writer import TranscriptWriter
    from bot.server_settings import ServerSettings

# How often Discord is asked what newcomers and what all people present may do.
CHECK_NEWCOMERS_S = 2.0
REFRESH_RIGHTS_S = 30.0


class JoinedChannel:
    """The channel of one room, from joining to leaving. `membership_changes`: who came and went, as yet unrecorded.
    `report`: called with the place in the code and the error of each problem.

    *Ownership*: the room awaits `run` and passes all its events to `on_event`. *Cancellation*: the connection is closed
    and all tasks end; what people say at that moment is lost.
    """

    def __init__(
        self,
        place: Place,
        services: RoomServices,
        session: RoomSession,
        conversation: Conversation,
        *,
        membership_changes: MembershipQueue,
        ending: RoomEnding,
        report: Callable[[str, Exception], None],
    ) -> None:
        self._place = place
        self._services = services
        self._clock = services.clock
        self._session = session
        self._conversation = conversation
        self._membership_changes = membership_changes
        self._ending = ending
        self._report = report
        self._link: Link | None = None
        # Nobody is heard before the notice is given, but for who has had it. The connection's thread reads this.
        self._notice_given = False
        self._claim_watch = ClaimWatch(services.memory.sessions, session.opened.claim, self._clock)
        self._forgetting_watch = ForgettingWatch(
            services.memory.sessions,
            session.opened.session.id,
            session.guild,
            people=self._people_known,
            clock=self._clock,
        )
        notice, guild = services.notice.for_room(self._settings, listen=session.listen), session.guild
        digest = notice.digest(asks=guild.asks)
        self._announcer = Announcer(
            place,
            notice,
            speak=self._conversation.speak_notice,
            clock=self._clock,
            asks=guild.asks,
            told=guild.consent.told_by(digest),
            on_told=partial(guild.tell, digest),
        )
        cost_before = session.guild.costs.total
        self._live_message = LiveMessage(
            place,
            doing=lambda: self._conversation.doing,
            cost=lambda: session.guild.costs.total - cost_before,
            hidden=self._conversation.hides,
            clock=self._clock,
        )
        self._writer = transcript_writer(
            session.listen, session.opened.session, place, services, drops=self._conversation.drops
        )
        self._attendance = AttendanceRecorder(
            place,
            session.opened.session,
            services.memory.sessions.attendance_for(session.opened.claim),
            excludes=session.guild.excludes,
            clock=self._clock,
        )
        self._check = RoomCheck(
            place,
            services,
            session,
            conversation,
            attendance=self._attendance,
            membership_changes=membership_changes,
            writer=self._writer,
            ending=ending,
            report=report,
        )

    # -- what the room asks -----------------------------------------------------------------------------------

    @property
    def link(self) -> Link | None:
        """Return the voice connection; None before it is there."""
        return self._link

    def faults(self) -> list[HealthFault]:
        """Return why nobody is heard here, nobody hears the bot, or nothing is stored."""
        return [] if self._link is None else self._check.faults(self._link)

    def on_membership(self, change: MembershipChange) -> None:
        """Somebody came into the channel, or left it. Does not wait."""
        if change.joined:
            self._announcer.on_joined()
        if self._notice_given:
            self._attendance.look()

    def on_event(self, event: events.Event) -> None:
        """Let the check, the live message and the transcript know of one of the room's events."""
        self._check.on_event(event)
        self._live_message.on_event(event)
        if self._writer is not None:
            self._writer.on_event(event)

    # -- joining and leaving ----------------------------------------------------------------------------------

    async def run(self, on_opened: Callable[[], None]) -> str:
        """Join, call `on_opened`, stay until the room is asked to end, and return the reason. Joining is broken off
        then. Somebody who takes the bot out while it joins asks for that too.

        Raises `LinkError`, `StaleOwnerError` or `NotAnnouncedError`, or the error of the task that failed.
        """
        connection = self._place.connect(
            self._conversation.playback,
            self._conversation.hear,
            excludes=self._excludes_sound,
            on_change=self._on_link_change,
            is_owner=self._claim_watch.is_owner,
        )
        try:
            async with AsyncExitStack() as stack:
                link = await self._joined(stack, connection)
                if link is None:
                    return await self._ending.wait()
                await stack.enter_async_context(self._shown_as_listening())
                return await self._stay(link, on_opened)
        except RemovedFromChannelError:
            self._ending.ask(EXPELLED)
            return await self._ending.wait()

    async def _joined(self, stack: AsyncExitStack, connection: AbstractAsyncContextManager[Link]) -> Link | None:
        """Return the voice connection, opened on `stack`; None if the room was asked to end before it was there."""

        async def break_off() -> None:
            await self._ending.wait()
            limit.reschedule(asyncio.get_running_loop().time())

        try:
            async with asyncio.timeout(None) as limit, background_task(break_off(), name="join-watch"):
                return await stack.enter_async_context(connection)
        except TimeoutError:
            if not limit.expired():
                raise
            return None

    async def _stay(self, link: Link, on_opened: Callable[[], None]) -> str:
        """Run the room's tasks until it is asked to end, and return the reason."""
        self._link = link
        await self._announcer.begin()
        self._notice_given = True
        self._attendance.look()
        async with asyncio.TaskGroup() as tasks:
            working = [tasks.create_task(fail_if_cancelled_inside(work), name=name) for name, work in self._work(link)]
            writing = [tasks.create_task(fail_if_cancelled_inside(work), name=name) for name, work in self._messages()]
            on_opened()
            reason = await self._ending.wait()
            await self._record_the_rest(reason)
            await _cancel(working)
            if reason != HANDED_OVER:
                await self._finish_messages()
            await _cancel(writing)
        self._check.measure(link)
        return reason

    def _work(self, link: Link) -> Iterator[tuple[str, Callable[[], Coroutine[Any, Any, object]]]]:
        """Yield the name of each of the room's tasks but those of `_messages`, and what it does."""
        yield "conversation", self._conversation.run
        yield "membership", self._record_membership
        yield "room-check", partial(self._check.run, link)
        yield "link", partial(self._watch_link, link)
        yield "notices", self._tell_newcomers
        yield "rights", self._refresh_rights
        yield "claim", self._claim_watch.run
        yield "forgettings", self._forgetting_watch.run
        if self._session.upkeep is not None:
            yield "memory-upkeep", self._session.upkeep.run
        if self._session.screens is not None:
            yield "screens", self._session.screens.run

    def _messages(self) -> Iterator[tuple[str, Callable[[], Coroutine[Any, Any, object]]]]:
        """Yield the same of the tasks that write what people read in the chat."""
        if self._writer is not None:
            yield "transcript", partial(self._write_transcript, self._writer)
        if self._settings.live_message:
            yield "live-message", self._live_message.run

    async def _record_the_rest(self, reason: str) -> None:
        """Make turns of the last words, of what a screen showed, and of who came and went. `reason`: why it ends."""
        await self._conversation.finish(process_ends=reason in {PROCESS_ENDS, HANDED_OVER})
        if self._session.screens is not None:
            await self._session.screens.finish(ShareEnd.HANDED_OVER if reason == HANDED_OVER else ShareEnd.CLOSED)
        membership = self._conversation.membership
        while self._membership_changes:
            await membership.handle(self._membership_changes.get_nowait(), room_ends=True)
        await membership.record_gathered(room_ends=True)
        await self._attendance.finish(goes_on=reason == HANDED_OVER)

    async def _finish_messages(self) -> None:
        """Finish what people read in the chat, once what is being written there is. Don't if another process goes on
        with the session: it would only begin when Discord has answered.
        """
        if self._writer is not None:
            await self._writer.finish()
        await self._live_message.finish()

    @asynccontextmanager
    async def _shown_as_listening(self) -> AsyncIterator[None]:
        """Remove the mark that the bot listens when the block ends, unless another process listens there. The announcer
        sets it.
        """
        is_elsewhere = False
        try:
            yield
            is_elsewhere = await self._ending.wait() == HANDED_OVER
        except Exception as error:
            is_elsewhere = isinstance(first_cause(error), StaleOwnerError)
            raise
        finally:
            if not is_elsewhere:
                await self._place.show_listening(on=False)

    def _on_link_change(self) -> None:
        if self._link is not None:
            self._check.measure_link(self._link)

    def _excludes_sound(self, user_id: int) -> bool:
        """Return whether a person's packets are dropped unread. Thread-safe."""
        is_told = self._notice_given or self._announcer.has_told(user_id)
        return not is_told or self._conversation.excludes(user_id)

    # -- tasks --------------------------------------------------------------------------------------------------

    async def _record_membership(self) -> None:
        while True:
            await self._conversation.membership.handle(await self._membership_changes.get())

    async def _tell_newcomers(self) -> None:
        """Give the notice to people who come later. Leave if that is impossible."""
        try:
            await self._announcer.run()
        except NotAnnouncedError as error:
            self._notice_given = False
            await self._leave(NOT_ANNOUNCED, "notice", error)

    async def _write_transcript(self, writer: TranscriptWriter) -> None:
        """Write down what is said. Leave if there can be no thread: nobody wants to be heard for nothing."""
        try:
            await writer.run()
        except ChatError as error:
            await self._leave(NO_TRANSCRIPT, "transcript", error)

    async def _leave(self, reason: str, where: str, error: BotError) -> None:
        self._report(where, error)
        await self._place.write(Text("I am leaving. {why}", why=sentence_of(error)))
        self._ending.ask(reason)

    async def _watch_link(self, link: Link) -> None:
        """Wait until the connection ends. End the room if somebody removed the bot, else raise `LinkError`, or
        `StaleOwnerError` if another process has taken the room over: then Discord has ended this connection for that.
        """
        reason = await link.lost()
        await self._claim_watch.check()
        if link.removed:
            self._ending.ask(EXPELLED)
            return
        raise reason

    async def _refresh_rights(self) -> None:
        """Keep what the people present may do up to date: of newcomers soon, of everybody at intervals."""
        asked_at = float("-inf")
        while True:
            due = self._clock.monotonic() - asked_at >= REFRESH_RIGHTS_S
            if due:
                asked_at = self._clock.monotonic()
            await self._place.refresh_rights(newcomers_only=not due)
            await self._clock.sleep(CHECK_NEWCOMERS_S)

    def _people_known(self) -> set[str]:
        """Return the ids of the people in the channel, and of those whose turns are in memory."""
        present = {str(person.id) for person in self._place.members()}
        return present | {part.speaker_id for turn in self._session.memory.turns for part in turn.parts}

    @property
    def _settings(self) -> ServerSettings:
        """What the server has chosen, now."""
        return self._services.servers.of(self._place.guild_id)


async def _cancel(tasks: Collection[asyncio.Task[None]]) -> None:
    """Cancel tasks and wait until they have ended."""
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks)
