"""A room: the bot's stay in one channel, with one stored session.

It opens the stored session and its memory, makes the conversation, joins the channel, and ends everything in order. A
stored session outlives a crash: the next `Room` in the channel resumes it.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import structlog

from bot import events
from bot.background_task import background_task, cancel_all
from bot.channel.port import ChatError, MembershipChange, RoomChannel, TypedMessage, UnfinishedWords, VoiceConnection
from bot.conversation.conversation import Conversation
from bot.conversation.services import RoomContext, RoomServices
from bot.errors import first_cause
from bot.models.voices import NO_SUCH_VOICE
from bot.posts.notice import NotAnnouncedError
from bot.posts.recap import post_recap
from bot.room.assemble import RoomParts, assemble_room
from bot.room.leaving import (
    CRASHED,
    EXPELLED,
    HANDED_OVER,
    MOVED,
    NO_TRANSCRIPT,
    NOT_ANNOUNCED,
    PROCESS_ENDS,
    TAKEN_OVER,
    TAKEN_OVER_ERRORS,
    RoomEnding,
)
from bot.room.room_check import check_room, connection_state, measure_room
from bot.room.room_status import room_status, status_before_opening
from bot.room.writing_down import Captions
from bot.settings import RESUME_WITHIN_S
from bot.texts.text import Text, sentence_of
from compaction.errors import StaleOwnerError, StoreError
from compaction.events import CompactionEvent, RunFailed, RunLanded
from compaction.log_events import MemoryEvent
from voice.cancellation import fail_if_cancelled_inside, fail_if_it_ends
from voice.errors import RemovedFromChannelError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
    from typing import Any

    from bot.health import HealthFault
    from bot.memory.upkeep import MemoryUpkeep
    from bot.models.voices import EmbeddedVoice
    from bot.room_part import RoomPart
    from bot.server_settings import ListenRequest
    from bot.store.sessions import OpenedSession
    from compaction.model import SessionId
    from voice.transport.audio_events import AudioEvent

    Work = Callable[[], Coroutine[Any, Any, object]]

log = structlog.get_logger()

# At the end: how long storing what people said about themselves may take.
UPKEEP_S = 4.0
# A part that takes longer to end hangs: its own limits are shorter. A closing room has more for all of them.
FINISH_S: Final = 34.0
# How often Discord is asked what newcomers and what all people present may do.
CHECK_NEWCOMERS_S: Final = 2.0
REFRESH_RIGHTS_S: Final = 30.0
# The process ends, or people wait in another channel: no time for a model that writes a recap.
_HURRIED = frozenset({PROCESS_ENDS, MOVED})


class Room:
    """A room in `channel`. Make a new one for each start. `listen`: what is said there is written down.

    *Ownership*: the guild's room runs `run` in a task. *Cancellation*: stored turns stay stored, and the stored session
    stays open for the next room; what people say at that moment is lost.
    """

    def __init__(self, channel: RoomChannel, services: RoomServices, listen: ListenRequest | None = None) -> None:
        self._channel = channel
        self._listen = listen
        self._services = services
        self._clock = services.clock
        # Set when the bot has joined the channel and receives its sound.
        self.opened = asyncio.Event()
        # Whether the session has ended in order, but its end could not be stored.
        self.left_session_open = False
        # Of the stored session, once it is known how that is written down.
        self._session_id: SessionId | None = None
        self._ending = RoomEnding()
        self._upkeep: MemoryUpkeep | None = None
        # None before the timeline is open, and after the stay.
        self._parts: RoomParts | None = None
        self._connection: VoiceConnection | None = None
        self._opened_at = float("inf")
        # Nobody is heard before the notice is given, but for who has had it. The connection's thread reads this.
        self._notice_given_at: float | None = None

    # -- what others ask ------------------------------------------------------------------------------------

    @property
    def ending(self) -> str | None:
        """Return why the room is ending (one word); None: it is not. One that is handed over is not."""
        return self._ending.reason if self._ending.reason != HANDED_OVER else None

    def close(self, reason: str) -> None:
        """Ask the room to end in order. `run` then returns `reason`."""
        self._ending.ask(reason)

    @property
    def _open(self) -> RoomParts | None:
        """Return the parts; None before the bot is in the channel and receives its sound."""
        return self._parts if self.opened.is_set() else None

    def is_busy(self) -> bool:
        """Return whether somebody speaks there, or the bot answers."""
        return self._open is not None and self._open.conversation.parts.participation.is_busy

    @property
    def listen(self) -> ListenRequest | None:
        """Return how somebody has asked for what is said to be written down; None: nobody has."""
        if self._session_id is None:
            return self._listen
        asked = self._services.servers.of(self._channel.guild_id).written_down(self._session_id)
        return None if asked is None else asked.request

    @property
    def only_listens(self) -> bool:
        """Return whether the bot only writes down here, and takes no part."""
        return self.listen is not None and not self.listen.captions

    @property
    def captions_thread(self) -> int | None:
        """Return the thread that was begun for what is said, or None."""
        if self._session_id is None:
            return None
        asked = self._services.servers.of(self._channel.guild_id).written_down(self._session_id)
        return None if asked is None else asked.thread_id

    async def caption(self, wanted: ListenRequest | None) -> None:
        """Write these captions from now on; None: only those that the server always has. Raises `StoreError`."""
        if self._session_id is None:
            self._listen = wanted
            return
        await self._services.servers.write_down(self._channel.guild_id, self._session_id, wanted)
        if self._open is not None and isinstance(self._open.writer, Captions):
            self._open.writer.retry()

    def on_membership(self, change: MembershipChange) -> None:
        """Somebody came into the channel, or left it. Does not wait. Who is there when it opens is known then."""
        if (parts := self._parts) is None:
            return
        parts.membership.on_change(change)
        parts.conversation.on_membership(change)
        if change.joined:
            parts.announcer.on_joined()
        if self._notice_given_at is not None:
            parts.attendance.look()

    async def take_typed(self, message: TypedMessage) -> Text | None:
        """Answer what somebody has typed to the bot, in writing and later; return why it does not, or None."""
        if self._open is None:
            return status_before_opening(self._channel)
        return await self._open.conversation.parts.typed_talk.take(message)

    async def play_sample(self, voice: EmbeddedVoice) -> Text | None:
        """Say the voice's sample; return why it was not said, or None. Raises `SynthesisError`."""
        if (parts := self._open) is None:
            return status_before_opening(self._channel)
        if self._services.voices is None:
            return NO_SUCH_VOICE
        async with self._services.voices.using(voice) as synthesizer:
            return await parts.conversation.play_sample(voice.sample, synthesizer)

    def status(self) -> Text:
        """Return what /status says."""
        if self._open is None or self._connection is None:
            return status_before_opening(self._channel)
        session = self._open.session
        return room_status(
            self._channel,
            self._open.conversation,
            session.timeline,
            self._connection,
            tiers=None if session.upkeep is None else session.upkeep.tier_checks.counts,
            open_s=self._clock.monotonic() - self._opened_at,
        )

    def unfinished(self) -> tuple[UnfinishedWords, ...]:
        """Return what people are saying, as far as it is recognised; the latest first."""
        return () if self._open is None else self._open.unfinished.words()

    def faults(self) -> list[HealthFault]:
        """Return what is wrong in the open room. Nothing is wrong before it is open."""
        return [] if self._open is None or self._connection is None else self._open.found_faults(self._connection)

    # -- the stored session ---------------------------------------------------------------------------------

    async def run(self) -> str:
        """Run until closed and return the reason. Raises `VoiceConnectionError`, `StoreError`, `NotAnnouncedError`, or
        the error of the part that failed; `StaleOwnerError` if another process has taken the room over.
        """
        guild_id, sessions = self._channel.guild_id, self._services.memory.sessions
        guild = await self._services.participation.of_guild(guild_id)
        opened = await sessions.open(
            guild_id=guild_id,
            channel_id=self._channel.channel_id,
            resume_within_s=RESUME_WITHIN_S,
            running=guild.running_session(self._clock.monotonic(), within_s=RESUME_WITHIN_S),
        )
        with structlog.contextvars.bound_contextvars(session_id=opened.session.id, guild_id=guild_id):
            try:
                # A server has one room at a time, and what earlier ones have left open in other channels does not go
                # on. The bot would come back there at a later start.
                for each in await sessions.end_open(guild_id, except_session=opened.session.id):
                    log.info("open_session_ended", ended_session_id=each)
                reason = await fail_if_cancelled_inside(partial(self._run_opened, opened))
            except Exception:
                await self._discard_unused(opened)
                raise
            if reason != HANDED_OVER:
                await self._discard_unused(opened)
            return reason

    async def _discard_unused(self, opened: OpenedSession) -> None:
        """Delete a session that was begun for a channel that the bot never joined.

        One that was resumed is kept, also if an earlier room that never joined could not delete it: nothing stored says
        so. It ends as any session does that has been silent for too long (`Sessions.open`), or is deleted after a week
        (`bot.memory.retention`).
        """
        if opened.resumed or self.opened.is_set():
            return
        try:
            await self._services.memory.sessions.discard(opened)
        except (StoreError, StaleOwnerError) as error:
            log.warning("session_not_discarded", problem=error)

    async def _run_opened(self, opened: OpenedSession) -> str:
        """Run an opened session and end it in order. Returns the reason."""
        channel, services, session_id = self._channel, self._services, opened.session.id
        async with services.memory.open_timeline(session_id, opened.claim, self._on_compaction) as timeline:
            listen = await self._asked(session_id)
            guild = await services.participation.begin_session(
                channel.guild_id, session_id, listens_only=listen is not None and not listen.captions
            )
            timeline.withhold(guild.opted_out_ids)
            timeline.compactor.on_change = partial(guild.words.take_back, turns=True)
            upkeep = self._upkeep = services.memory.open_upkeep(session_id, opened.claim, timeline, guild.words)
            webhook = services.servers.of(channel.guild_id).webhook
            if webhook is not None and not opened.resumed:
                # The notice names it from the first word on.
                await services.memory.sessions.webhooks.expect(session_id, since=webhook.since)
            with services.measure() as measure, services.show_live(session_id, channel, timeline, guild) as show:
                services = self._services = services.also_observed_by(measure, show, self._on_event)
                session = RoomContext(channel, services, opened, timeline, upkeep, guild, listen)
                reason = CRASHED
                try:
                    reason = await self._run_begun(session)
                    if reason != HANDED_OVER:
                        await self._end(session, reason)
                except Exception as error:
                    if isinstance(first_cause(error), TAKEN_OVER_ERRORS):
                        reason = TAKEN_OVER
                    raise
                finally:
                    guild.ran_until = self._clock.monotonic()
                    services.observe(events.RoomClosed(session_id, reason, self._clock.monotonic()))
            return reason

    async def _asked(self, session_id: SessionId) -> ListenRequest | None:
        """Return how somebody has asked for the session to be written down, now or in an earlier room of it, and store
        that. Raises `StoreError`.
        """
        stored = self._services.servers.of(self._channel.guild_id).written_down(session_id)
        # One that is stored already keeps its thread.
        if self._listen is not None and (stored is None or stored.request != self._listen):
            await self._services.servers.write_down(self._channel.guild_id, session_id, self._listen)
        self._session_id = session_id
        return self.listen

    async def _end(self, session: RoomContext, reason: str) -> None:
        """Store the end of the session, and post what it was about."""
        timeline = session.timeline
        if session.upkeep is not None:
            await session.upkeep.complete(within_s=UPKEEP_S)
        try:
            await timeline.end()
        except StoreError as error:
            # Whoever runs the room ends the session once the database answers, unless the next process resumes it.
            self.left_session_open = True
            session.report("session", error)
            return
        log.info(MemoryEvent.SESSION_ENDED, reason=reason, total_turns=timeline.total_turns, cursor=timeline.cursor)
        services, channel = session.services, session.channel
        readers = services.memory.readable
        if readers is None or reason == NOT_ANNOUNCED or not services.servers.of(channel.guild_id).posts_recap:
            return
        sessions = services.memory.sessions
        await post_recap(
            channel,
            session.id,
            sessions,
            sessions.posted_transcripts,
            readers.digests,
            words=session.words,
            hurried=reason in _HURRIED,
        )

    # -- joining and leaving ----------------------------------------------------------------------------------

    async def _run_begun(self, session: RoomContext) -> str:
        """Join the channel, stay until asked to leave, and return the reason. Joining is broken off then. Somebody who
        takes the bot out while it joins asks for that too.
        """
        conversation = Conversation(session)
        screens, sharing = self._services.screens, None
        try:
            async with AsyncExitStack() as stack:
                if screens is not None:
                    sharing = stack.enter_context(
                        screens.room_for(
                            session.id,
                            self._channel,
                            timeline=session.timeline,
                            observe=conversation.on_recorded,
                            words=session.words,
                            payer=session.guild,
                        )
                    )
                parts = self._parts = assemble_room(session, conversation, sharing)
                connection = self._connection = await self._joined(stack, parts)
                if connection is None:
                    return await self._ending.wait()
                await stack.enter_async_context(self._shown_as_listening())
                return await self._stay(parts, connection)
        except RemovedFromChannelError:
            self._ending.ask(EXPELLED)
            return await self._ending.wait()
        finally:
            # What is typed from now on is for the next room, which may come back to the channel.
            self._parts = None

    async def _joined(self, stack: AsyncExitStack, parts: RoomParts) -> VoiceConnection | None:
        """Return the voice connection, opened on `stack`; None if the room was asked to end before it was there.

        Nobody is heard over it who has not had the notice.
        """

        async def break_off() -> None:
            await self._ending.wait()
            limit.reschedule(asyncio.get_running_loop().time())

        connection = self._channel.connect(parts.conversation.parts.speaking.playback, self)
        try:
            async with asyncio.timeout(None) as limit, background_task(break_off(), name="join-watch"):
                return await stack.enter_async_context(connection)
        except TimeoutError:
            if not limit.expired():
                raise
            return None

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
            is_elsewhere = isinstance(first_cause(error), TAKEN_OVER_ERRORS)
            raise
        finally:
            if not is_elsewhere:
                await self._channel.show_listening(on=False)

    async def _stay(self, parts: RoomParts, connection: VoiceConnection) -> str:
        """Give the notice and run the room's tasks until it is asked to end. Return the reason."""
        await parts.announcer.begin()
        self._notice_given_at = self._clock.monotonic()
        parts.attendance.look()
        async with asyncio.TaskGroup() as tasks:

            def started(works: Iterator[tuple[str, Work]]) -> list[asyncio.Task[object]]:
                return [tasks.create_task(fail_if_cancelled_inside(work), name=name) for name, work in works]

            working, writing = started(self._work(parts, connection)), started(self._messages(parts))
            self._on_opened(parts.session)
            reason = await self._ending.wait()
            for part in parts.working:
                await _finish(part, reason)
            await cancel_all(working)
            # Not if another process goes on with the session: it would only begin when Discord has answered.
            for part in () if reason == HANDED_OVER else parts.posting:
                await _finish(part, reason)
            await cancel_all(writing)
        measure_room(parts, connection)
        return reason

    def _on_opened(self, session: RoomContext) -> None:
        stored, resumed = session.opened.session, session.opened.resumed
        self._opened_at = self._clock.monotonic()
        log.info(MemoryEvent.ROOM_OPENED, channel_id=self._channel.channel_id, resumed=resumed)
        self.opened.set()
        self._services.observe(
            events.RoomOpened(stored.id, self._channel.guild_id, self._channel.channel_id, resumed, self._opened_at)
        )
        if session.upkeep is not None:
            session.upkeep.on_join(str(person.id) for person in self._channel.members())

    def _work(self, parts: RoomParts, connection: VoiceConnection) -> Iterator[tuple[str, Work]]:
        """Yield the room's tasks, each by its name and what it runs. `_messages` has those that write messages."""
        yield from ((part.task, partial(fail_if_it_ends, part.run)) for part in parts.working if part.task)
        yield "room-check", partial(check_room, parts, connection, self._ending)
        yield "connection", partial(self._watch_connection, parts, connection)
        yield "notices", partial(self._work_or_leave, parts, parts.announcer.run, NOT_ANNOUNCED)
        yield "rights", partial(self._refresh_rights, parts)

    def _messages(self, parts: RoomParts) -> Iterator[tuple[str, Work]]:
        """Yield the same of the tasks that write what people read in the chat."""
        yield "written-down", partial(self._work_or_leave, parts, parts.writer.run, NO_TRANSCRIPT)
        if self._services.servers.of(self._channel.guild_id).live_message:
            yield "live-message", parts.live_message.run

    # -- what the voice connection tells and asks (see `ConnectionListener`) -------------------------------------

    def hear(self, batch: Sequence[AudioEvent]) -> None:
        if self._parts is not None:
            self._parts.conversation.hear(batch)

    def heard_since(self, user_id: int) -> float | None:
        if (parts := self._parts) is None:
            return None
        agreed_at = parts.session.guild.heard_since(user_id)
        if agreed_at is None or user_id in parts.announcer.had_notice:
            return agreed_at
        return None if self._notice_given_at is None else max(agreed_at, self._notice_given_at)

    def on_change(self) -> None:
        if self._connection is not None:
            self._services.observe(connection_state(self._connection, self._clock.monotonic()))

    async def is_owner(self) -> bool:
        return self._parts is not None and await self._parts.claim_watch.is_owner()

    # -- while it is open ------------------------------------------------------------------------------------

    async def _work_or_leave(self, parts: RoomParts, work: Work, reason: str) -> None:
        """Give the notice to people who come later, or write down what is said where the bot only listens. Leave where
        that is impossible: nobody may be heard who could not know it, and nobody wants to be heard for nothing.
        """
        try:
            await work()
        except (NotAnnouncedError, ChatError) as error:
            self._notice_given_at = None
            parts.session.report(reason, error)
            await self._channel.write(Text("I am leaving. {why}", why=sentence_of(error)))
            self._ending.ask(reason)

    async def _watch_connection(self, parts: RoomParts, connection: VoiceConnection) -> None:
        """Wait until the connection ends. End the room if somebody removed the bot, else raise `VoiceConnectionError`,
        or `StaleOwnerError` if another process has taken the room over: then Discord has ended this connection for
        that.
        """
        reason = await connection.lost()
        await parts.claim_watch.check()
        if not connection.removed:
            raise reason
        self._ending.ask(EXPELLED)

    async def _refresh_rights(self, parts: RoomParts) -> None:
        """Keep what the people present may do and read up to date: of newcomers soon, of everybody at intervals."""
        asked_at = float("-inf")
        while True:
            due = self._clock.monotonic() - asked_at >= REFRESH_RIGHTS_S
            if due:
                asked_at = self._clock.monotonic()
            await self._channel.refresh_rights(newcomers_only=not due)
            await parts.attendance.store()
            await self._clock.sleep(CHECK_NEWCOMERS_S)

    # -- events ---------------------------------------------------------------------------------------------

    def _on_event(self, event: events.Event) -> None:
        if self._parts is not None:
            for part in (*self._parts.working, *self._parts.posting):
                part.on_event(event)

    def _on_compaction(self, event: CompactionEvent) -> None:
        now = self._clock.monotonic()
        if isinstance(event, RunLanded):
            if self._upkeep is not None:
                self._upkeep.wake()
            if self._parts is not None:
                self._parts.conversation.on_compaction_landed()
            self._services.observe(
                events.CompactionLanded(
                    old_cursor=event.old_cursor,
                    new_cursor=event.new_cursor,
                    covered_through_turn=event.covered_through_turn,
                    summary=event.summary,
                    latency_ms=event.latency_ms,
                    at=now,
                )
            )
        elif isinstance(event, RunFailed):
            self._services.observe(events.CompactionFailed(event.cursor, event.error, now, event.latency_ms))


async def _finish(part: RoomPart, reason: str) -> None:
    """Bring a part to its end. One that hangs is given up: the session has what was said."""
    goes_on = reason == HANDED_OVER
    try:
        async with asyncio.timeout(FINISH_S):
            await part.finish(goes_on=goes_on, process_ends=goes_on or reason == PROCESS_ENDS)
    except TimeoutError:
        log.error("part_not_finished", where=type(part).__name__, within_s=FINISH_S)  # noqa: TRY400 - no crash
