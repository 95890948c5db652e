"""One voice session: the bot's stay in one channel with one stored session, from joining to leaving.

It opens the stored session and its memory, makes the conversation, joins the channel, gives the notice, runs the tasks,
and ends everything in order. A stored session outlives a crash: the next `Session` in the channel resumes it.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from functools import partial
from typing import TYPE_CHECKING

import structlog

from bot import events
from bot.channel.port import ChatError
from bot.room.attendance import AttendanceRecorder
from bot.room.channel_work import cancel_all, joined, refresh_rights, shown_as_listening, watch_link
from bot.room.conversation.conversation import Conversation
from bot.room.endings import CRASHED, EXPELLED, HANDED_OVER, NO_TRANSCRIPT, NOT_ANNOUNCED, PROCESS_ENDS, RoomEnding
from bot.room.listen_only import remembered_request
from bot.room.live_message import LiveMessage
from bot.room.notice import Announcer, NotAnnouncedError
from bot.room.other_processes import ClaimWatch, ForgettingWatch, people_known
from bot.room.posted_messages import post_recap
from bot.room.room_check import RoomCheck
from bot.room.room_status import UnfinishedSpeech, room_status, status_before_opening
from bot.room.services import SessionParts
from bot.room.stored_session import compaction_event, discard_unused, end_earlier
from bot.room.transcript_writer import transcript_writer
from bot.screen.messages import ShareEnd
from bot.settings import RESUME_WITHIN_S
from bot.texts.text import Text, sentence_of
from compaction.errors import StoreError
from compaction.events import FoldLanded
from voice.cancellation import fail_if_cancelled_inside
from voice.errors import RemovedFromChannelError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator
    from typing import Any

    from bot.channel.port import Link, ListenRequest, MembershipChange, Place, TypedMessage, UnfinishedWords
    from bot.health import HealthFault
    from bot.memory.upkeep import MemoryUpkeep
    from bot.models.voices import EmbeddedVoice
    from bot.room.services import RoomServices
    from bot.room.transcript_writer import TranscriptWriter
    from bot.screen.room import RoomScreens
    from bot.store.sessions import OpenedSession
    from compaction.events import CompactionEvent
    from compaction.session import SessionMemory

log = structlog.get_logger()

# At the end: how long storing what people said about themselves may take.
UPKEEP_S = 4.0


class Session:
    """A voice session in `place`. Make a new one for each start. `listen`: the bot only writes down there.

    *Ownership*: the guild's room runs `run` in a task. *Cancellation*: stored turns stay stored, and the stored session
    stays open for the next room; what people say at that moment is lost.
    """

    # Made by `_begin`, when the memory is open.
    _parts: SessionParts
    _conversation: Conversation
    _announcer: Announcer
    _attendance: AttendanceRecorder
    _live_message: LiveMessage
    _writer: TranscriptWriter | None
    _claim_watch: ClaimWatch
    _forgetting_watch: ForgettingWatch
    _check: RoomCheck
    _screens: RoomScreens | None

    def __init__(self, place: Place, services: RoomServices, listen: ListenRequest | None = None) -> None:
        self._place = place
        self._listen = listen
        self._services = services
        self._clock = services.clock
        # Set when the bot has joined the channel and receives its sound.
        self.opened = asyncio.Event()
        # Whether the session has ended in order, but its end could not be stored.
        self.left_session_open = False
        self._opened_at = self._clock.monotonic()
        self._ending = RoomEnding()
        self._unfinished = UnfinishedSpeech(place)
        self._upkeep: MemoryUpkeep | None = None
        self._has_begun = False
        self._link: Link | None = None
        # Nobody is heard before the notice is given, but for who has had it. The connection's thread reads this.
        self._notice_given = False

    # -- what others ask ------------------------------------------------------------------------------------

    @property
    def ending(self) -> str | None:
        """Return why the session is ending (one word); None: it is not. One that is handed over is not."""
        return self._ending.reason if self._ending.reason != HANDED_OVER else None

    def close(self, reason: str) -> None:
        """Ask the session to end in order. `run` then returns `reason`."""
        self._ending.ask(reason)

    def is_busy(self) -> bool:
        """Return whether somebody speaks there, or the bot answers."""
        return self._has_begun and self._conversation.is_busy()

    def on_membership(self, change: MembershipChange) -> None:
        """Somebody came into the channel, or left it. Does not wait. Who is there when it opens is known then."""
        if not self._has_begun:
            return
        self._conversation.membership.on_change(change)
        if change.joined:
            self._announcer.on_joined()
        if self._notice_given:
            self._attendance.look()

    async def take_typed(self, message: TypedMessage) -> Text | None:
        """Answer what somebody has typed to the bot, in writing and later; return why it does not, or None."""
        if not self.opened.is_set():
            return status_before_opening(self._place)
        return await self._conversation.typed_talk.take(message)

    async def play_sample(self, voice: EmbeddedVoice) -> Text | None:
        """Say the voice's sample; return why it was not said, or None. Raises `SynthesisError`."""
        if not self.opened.is_set():
            return status_before_opening(self._place)
        async with self._services.using_voice(voice) as synthesizer:
            return await self._conversation.play_sample(voice.sample, synthesizer)

    def status(self) -> Text:
        """Return what /status says."""
        if self._link is None or not self.opened.is_set():
            return status_before_opening(self._place)
        now = self._clock.monotonic()
        return room_status(
            self._place,
            self._conversation,
            self._parts.memory,
            self._link,
            tiers=None if self._upkeep is None else self._upkeep.tier_counts,
            health=self._services.health(),
            open_s=now - self._opened_at,
            now=now,
        )

    def unfinished(self) -> tuple[UnfinishedWords, ...]:
        """Return what people are saying, as far as it is recognised; the latest first."""
        return self._unfinished.words(self._conversation.hides) if self._has_begun else ()

    def faults(self) -> list[HealthFault]:
        """Return what is wrong in the open room. Nothing is wrong before it is open."""
        return [] if self._link is None or not self.opened.is_set() else self._check.faults(self._link)

    # -- the stored session ---------------------------------------------------------------------------------

    async def run(self) -> str:
        """Run until closed and return the reason. Raises `LinkError`, `StoreError`, `NotAnnouncedError`, or the error
        of the part that failed; `StaleOwnerError` if another process has taken the room over.
        """
        guild_id, sessions = self._place.guild_id, self._services.memory.sessions
        guild = await self._services.participation.of_guild(guild_id)
        opened = await sessions.open(
            guild_id=guild_id,
            channel_id=self._place.channel_id,
            resume_within_s=RESUME_WITHIN_S,
            running=guild.running_session(self._clock.monotonic(), within_s=RESUME_WITHIN_S),
        )
        with structlog.contextvars.bound_contextvars(session_id=opened.session.id, guild_id=guild_id):
            try:
                await end_earlier(sessions, opened, guild_id)
                reason = await self._run_opened(opened)
            except Exception:
                await discard_unused(sessions, opened, is_used=self.opened.is_set())
                raise
            if reason != HANDED_OVER:
                await discard_unused(sessions, opened, is_used=self.opened.is_set())
            return reason

    async def _run_opened(self, opened: OpenedSession) -> str:
        """Run an opened session and end it in order. Returns the reason."""
        place, services, session_id = self._place, self._services, opened.session.id
        async with services.memory.open_memory(session_id, opened.claim, self._on_compaction) as memory:
            self._upkeep = services.memory.open_upkeep(session_id, opened.claim, memory)
            listen = await remembered_request(self._listen, session_id, place.guild_id, services.servers)
            guild = await services.participation.begin_session(
                place.guild_id, session_id, listens_only=listen is not None
            )
            memory.withhold(guild.opted_out_ids)
            with services.measure() as measure, services.show_live(session_id, place, memory, guild) as show:
                self._services = services.also_observed_by(measure, show, self._on_event)
                reason = CRASHED
                try:
                    reason = await self._run_begun(SessionParts(opened, memory, self._upkeep, guild, listen))
                    if reason != HANDED_OVER:
                        await self._end(memory, reason)
                finally:
                    guild.ran_until = self._clock.monotonic()
                    self._services.observe(events.RoomClosed(session_id, reason, self._clock.monotonic()))
            return reason

    async def _end(self, memory: SessionMemory, reason: str) -> None:
        """Store the end of the session, and post what it was about."""
        if self._upkeep is not None:
            await self._upkeep.finish(within_s=UPKEEP_S)
        try:
            await memory.end()
        except StoreError as error:
            # Whoever runs the room ends the session once the database answers, unless the next process resumes it.
            self.left_session_open = True
            self._report("session", error)
            return
        log.info("session_ended", reason=reason, total_turns=memory.total_turns, cursor=memory.cursor)
        await post_recap(memory.session_id, self._place, self._services, reason=reason)

    # -- joining and leaving ----------------------------------------------------------------------------------

    async def _run_begun(self, parts: SessionParts) -> str:
        """Join the channel, stay until asked to leave, and return the reason. Joining is broken off then. Somebody who
        takes the bot out while it joins asks for that too.
        """
        conversation = Conversation(self._place, self._services, parts, report=self._report)
        screens, sharing = self._services.screens, None
        try:
            async with AsyncExitStack() as stack:
                if screens is not None:
                    sharing = stack.enter_context(
                        screens.room_for(parts.id, self._place, memory=parts.memory, observer=conversation)
                    )
                self._begin(parts, conversation, sharing)
                connection = self._place.connect(
                    conversation.playback,
                    conversation.hear,
                    excludes=self._excludes_sound,
                    on_change=self._on_link_change,
                    is_owner=self._claim_watch.is_owner,
                )
                link = await joined(stack, connection, self._ending)
                if link is None:
                    return await self._ending.wait()
                await stack.enter_async_context(shown_as_listening(self._place, self._ending))
                return await self._stay(link)
        except RemovedFromChannelError:
            self._ending.ask(EXPELLED)
            return await self._ending.wait()

    def _begin(self, parts: SessionParts, conversation: Conversation, screens: RoomScreens | None) -> None:
        """Make what looks after the stay."""
        place, services, guild, stored = self._place, self._services, parts.guild, parts.opened.session
        self._parts, self._conversation, self._screens = parts, conversation, screens
        sessions = services.memory.sessions
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
            ending=self._ending,
            report=self._report,
        )
        self._has_begun = True

    async def _stay(self, link: Link) -> str:
        """Run the room's tasks until it is asked to end, and return the reason."""
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
        opened = self._parts.opened
        self._opened_at = self._clock.monotonic()
        log.info("room_opened", channel_id=self._place.channel_id, resumed=opened.resumed)
        self.opened.set()
        self._services.observe(
            events.RoomOpened(
                opened.session.id, self._place.guild_id, self._place.channel_id, opened.resumed, self._opened_at
            )
        )
        if self._upkeep is not None:
            self._upkeep.on_join(str(person.id) for person in self._place.members())

    def _work(self, link: Link) -> Iterator[tuple[str, Callable[[], Coroutine[Any, Any, object]]]]:
        """Yield the name of each of the room's tasks but those of `_messages`, and what it does."""
        yield "conversation", self._conversation.run
        yield "membership", self._conversation.membership.run
        yield "room-check", partial(self._check.run, link)
        yield "link", partial(watch_link, link, self._claim_watch, self._ending)
        yield "notices", partial(self._work_or_leave, self._announcer.run, NOT_ANNOUNCED)
        yield "rights", partial(refresh_rights, self._place, self._clock)
        yield "claim", self._claim_watch.run
        yield "forgettings", self._forgetting_watch.run
        if self._upkeep is not None:
            yield "memory-upkeep", self._upkeep.run
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
        await self._conversation.finish(process_ends=reason in {PROCESS_ENDS, HANDED_OVER})
        if self._screens is not None:
            await self._screens.finish(ShareEnd.HANDED_OVER if reason == HANDED_OVER else ShareEnd.CLOSED)
        await self._conversation.membership.record_rest()
        await self._attendance.finish(goes_on=reason == HANDED_OVER)

    def _excludes_sound(self, user_id: int) -> bool:
        """Return whether a person's packets are dropped unread. Thread-safe."""
        is_told = self._notice_given or self._announcer.has_told(user_id)
        return not is_told or self._conversation.excludes(user_id)

    # -- tasks --------------------------------------------------------------------------------------------------

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

    # -- events ---------------------------------------------------------------------------------------------

    def _on_event(self, event: events.Event) -> None:
        if not self._has_begun:
            return
        self._unfinished.on_event(event)
        self._check.on_event(event)
        self._live_message.on_event(event)
        if self._writer is not None:
            self._writer.on_event(event)

    def _on_link_change(self) -> None:
        if self._link is not None:
            self._check.measure_link(self._link)

    def _on_compaction(self, event: CompactionEvent) -> None:
        if isinstance(event, FoldLanded):
            if self._upkeep is not None:
                self._upkeep.on_fold()
            if self._has_begun:
                self._conversation.on_compaction_landed()
        if (seen := compaction_event(event, self._clock.monotonic())) is not None:
            self._services.observe(seen)

    def _report(self, where: str, error: Exception) -> None:
        log.error("room_problem", where=where, problem=error)
        self._services.observe(events.Problem(where, sentence_of(error), self._clock.monotonic()))
