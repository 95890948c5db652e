"""The stay in one channel: from joining to leaving, with all that runs meanwhile beside the conversation.

`Session` opens the stored session and its memory before it, and ends them after it.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

import structlog

from bot import events
from bot.channel.port import ChatError
from bot.room.attendance import AttendanceRecorder
from bot.room.channel_work import cancel_all, refresh_rights, watch_link
from bot.room.endings import HANDED_OVER, NO_TRANSCRIPT, NOT_ANNOUNCED, PROCESS_ENDS
from bot.room.live_message import LiveMessage
from bot.room.notice import Announcer, NotAnnouncedError
from bot.room.other_processes import ClaimWatch, ForgettingWatch, people_known
from bot.room.room_check import RoomCheck
from bot.room.room_status import UnfinishedSpeech, room_status, status_before_opening
from bot.room.transcript_writer import transcript_writer
from bot.screen.messages import ShareEnd
from bot.texts.text import Text, sentence_of
from voice.cancellation import fail_if_cancelled_inside

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator
    from contextlib import AbstractAsyncContextManager
    from typing import Any

    from bot.channel.port import Link, MembershipChange, Place, UnfinishedWords
    from bot.health import HealthFault
    from bot.room.conversation.conversation import Conversation
    from bot.room.endings import RoomEnding
    from bot.room.services import RoomServices, SessionParts
    from bot.screen.room import RoomScreens

log = structlog.get_logger()


class RoomStay:
    """The stay of one session in its channel. `screens`: those that people share there; None: sharing is off.

    `opened`: set here once the bot receives sound. `ending`: asked to end. `report`: called with the place in the code
    and the error of each problem. *Ownership*: the session runs `run`.
    """

    def __init__(
        self,
        place: Place,
        services: RoomServices,
        parts: SessionParts,
        conversation: Conversation,
        screens: RoomScreens | None,
        *,
        opened: asyncio.Event,
        ending: RoomEnding,
        report: Callable[[str, Exception], None],
    ) -> None:
        guild, stored, sessions = parts.guild, parts.opened.session, services.memory.sessions
        self._place, self._services, self._clock = place, services, services.clock
        self._parts, self._screens, self._report = parts, screens, report
        self._opened, self._ending = opened, ending
        self.conversation = conversation
        self._opened_at = self._clock.monotonic()
        self._link: Link | None = None
        # Nobody is heard before the notice is given, but for who has had it. The connection's thread reads this.
        self._notice_given = False
        self._unfinished = UnfinishedSpeech(place)
        self._claim_watch = ClaimWatch(sessions, parts.opened.claim, self._clock)
        self._forgetting_watch = ForgettingWatch(
            sessions, stored.id, guild, people=partial(people_known, place, parts.memory), clock=self._clock
        )
        notice = services.notice.for_room(services.servers.of(place.guild_id), listen=parts.listen)
        digest = notice.digest(asks=guild.asks)
        self._announcer = Announcer(
            place,
            notice,
            speak=conversation.speak_notice,
            clock=self._clock,
            asks=guild.asks,
            told=guild.consent.told_by(digest),
            on_told=partial(guild.tell, digest),
        )
        self._live_message = LiveMessage(
            place, doing=conversation.doing, costs=guild.costs, hidden=conversation.hides, clock=self._clock
        )
        self._writer = transcript_writer(parts.listen, stored, place, services, drops=conversation.drops)
        self._attendance = AttendanceRecorder(
            place,
            stored,
            sessions.attendance_for(parts.opened.claim),
            excludes=guild.excludes,
            clock=self._clock,
        )
        self._check = RoomCheck(
            place,
            services,
            parts,
            conversation,
            attendance=self._attendance,
            writer=self._writer,
            screens=screens,
            ending=ending,
            report=report,
        )

    # -- what others ask ------------------------------------------------------------------------------------

    @property
    def is_open(self) -> bool:
        """Return whether the bot is in the channel and receives its sound."""
        return self._link is not None and self._opened.is_set()

    def status(self) -> Text:
        """Return what /status says."""
        if self._link is None or not self.is_open:
            return status_before_opening(self._place)
        now = self._clock.monotonic()
        return room_status(
            self._place,
            self.conversation,
            self._parts.memory,
            self._link,
            tiers=None if self._parts.upkeep is None else self._parts.upkeep.tier_counts,
            health=self._services.health(),
            open_s=now - self._opened_at,
            now=now,
        )

    def unfinished(self) -> tuple[UnfinishedWords, ...]:
        """Return what people are saying, as far as it is recognised; the latest first."""
        return self._unfinished.words(self.conversation.hides)

    def faults(self) -> list[HealthFault]:
        """Return what is wrong in the open room. Nothing is wrong before it is open."""
        return [] if self._link is None or not self.is_open else self._check.faults(self._link)

    def on_membership(self, change: MembershipChange) -> None:
        """Somebody came into the channel, or left it. Does not wait."""
        self.conversation.membership.on_change(change)
        if change.joined:
            self._announcer.on_joined()
        if self._notice_given:
            self._attendance.look()

    def on_event(self, event: events.Event) -> None:
        """Take note of what happens in the room."""
        self._unfinished.on_event(event)
        self._check.on_event(event)
        self._live_message.on_event(event)
        if self._writer is not None:
            self._writer.on_event(event)

    # -- joining and leaving ----------------------------------------------------------------------------------

    def connection(self) -> AbstractAsyncContextManager[Link]:
        """Return the voice connection, to be opened. Who has not had the notice is not heard over it."""
        return self._place.connect(
            self.conversation.playback,
            self.conversation.hear,
            excludes=self._excludes_sound,
            on_change=self._on_link_change,
            is_owner=self._claim_watch.is_owner,
        )

    async def run(self, link: Link) -> str:
        """Give the notice and run the room's tasks until it is asked to end. Return the reason."""
        self._link = link
        await self._announcer.begin()
        self._notice_given = True
        self._attendance.look()
        async with asyncio.TaskGroup() as tasks:
            working = [tasks.create_task(fail_if_cancelled_inside(work), name=name) for name, work in self._work(link)]
            writing = [tasks.create_task(fail_if_cancelled_inside(work), name=name) for name, work in self._messages()]
            self._on_opened()
            reason = await self._ending.wait()
            await self._record_the_rest(reason)
            await cancel_all(working)
            if reason != HANDED_OVER:
                # Not if another process goes on with the session: it would only begin when Discord has answered.
                if self._writer is not None:
                    await self._writer.finish()
                await self._live_message.finish()
            await cancel_all(writing)
        self._check.measure(link)
        return reason

    def _on_opened(self) -> None:
        stored, resumed = self._parts.opened.session, self._parts.opened.resumed
        self._opened_at = self._clock.monotonic()
        log.info("room_opened", channel_id=self._place.channel_id, resumed=resumed)
        self._opened.set()
        self._services.observe(
            events.RoomOpened(stored.id, self._place.guild_id, self._place.channel_id, resumed, self._opened_at)
        )
        if self._parts.upkeep is not None:
            self._parts.upkeep.on_join(str(person.id) for person in self._place.members())

    def _work(self, link: Link) -> Iterator[tuple[str, Callable[[], Coroutine[Any, Any, object]]]]:
        """Yield the name of each of the room's tasks but those of `_messages`, and what it does."""
        yield "conversation", self.conversation.run
        yield "membership", self.conversation.membership.run
        yield "room-check", partial(self._check.run, link)
        yield "link", partial(watch_link, link, self._claim_watch, self._ending)
        yield "notices", partial(self._work_or_leave, self._announcer.run, NOT_ANNOUNCED)
        yield "rights", partial(refresh_rights, self._place, self._clock)
        yield "claim", self._claim_watch.run
        yield "forgettings", self._forgetting_watch.run
        if self._parts.upkeep is not None:
            yield "memory-upkeep", self._parts.upkeep.run
        if self._screens is not None:
            yield "screens", self._screens.run

    def _messages(self) -> Iterator[tuple[str, Callable[[], Coroutine[Any, Any, object]]]]:
        """Yield the same of the tasks that write what people read in the chat."""
        if self._writer is not None:
            yield "transcript", partial(self._work_or_leave, self._writer.run, NO_TRANSCRIPT)
        if self._services.servers.of(self._place.guild_id).live_message:
            yield "live-message", self._live_message.run

    async def _record_the_rest(self, reason: str) -> None:
        """Make turns of the last words, of what a screen showed, and of who came and went. `reason`: why it ends."""
        await self.conversation.finish(process_ends=reason in {PROCESS_ENDS, HANDED_OVER})
        if self._screens is not None:
            await self._screens.finish(ShareEnd.HANDED_OVER if reason == HANDED_OVER else ShareEnd.CLOSED)
        await self.conversation.membership.record_rest()
        await self._attendance.finish(goes_on=reason == HANDED_OVER)

    def _excludes_sound(self, user_id: int) -> bool:
        """Return whether a person's packets are dropped unread. Thread-safe."""
        is_told = self._notice_given or self._announcer.has_told(user_id)
        return not is_told or self.conversation.excludes(user_id)

    def _on_link_change(self) -> None:
        if self._link is not None:
            self._check.measure_link(self._link)

    async def _work_or_leave(self, work: Callable[[], Coroutine[Any, Any, object]], reason: str) -> None:
        """Give the notice to people who come later, or write down what is said. Leave where that is impossible: nobody
        may be heard who could not know it, and nobody wants to be heard for nothing.
        """
        try:
            await work()
        except (NotAnnouncedError, ChatError) as error:
            self._notice_given = False
            self._report(reason, error)
            await self._place.write(Text("I am leaving. {why}", why=sentence_of(error)))
            self._ending.ask(reason)
