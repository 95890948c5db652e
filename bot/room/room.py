"""One room: a voice session in one channel, from joining to leaving.

It opens the session's memory, joins the channel, owns the conversation's task and ends everything in order.
`bot.room.conversation` handles speech and replies. A session outlives a crash: the next room in the channel resumes it.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING

import structlog

from bot import events
from bot.channel.port import ChatError, ListenRequest
from bot.memory.recall import RecallScope
from bot.room.announcer import Announcer, NotAnnouncedError
from bot.room.claim_watch import ClaimWatch
from bot.room.conversation import Conversation
from bot.room.endings import HANDED_OVER, PROCESS_ENDS
from bot.room.live_message import LiveMessage
from bot.room.recap import post_recap
from bot.room.room_faults import RoomFaults
from bot.room.room_status import room_status, status_before_opening
from bot.room.session_limits import SessionLimits
from bot.room.tasks import run_for_room
from bot.room.transcript_writer import TranscriptWriter, read_transcript
from bot.server_settings import ListenOnly
from bot.settings import RESUME_WITHIN_S
from bot.texts.text import Text, sentence_of
from compaction.errors import StoreError
from compaction.folding.events import FoldFailed, FoldLanded
from voice.queue_figures import QueueFigures

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from contextlib import AbstractContextManager

    from bot.channel.port import Link, MembershipChange, Place
    from bot.health import HealthFault
    from bot.memory.upkeep import MemoryUpkeep
    from bot.models.voices import EmbeddedVoice
    from bot.participation.guild_participation import GuildParticipation
    from bot.room.services import RoomServices
    from bot.screen.room import RoomScreens
    from bot.server_settings import ServerSettings
    from bot.store.sessions import OpenedSession
    from compaction.folding.events import CompactionEvent
    from compaction.model import Note, SessionId, Turn
    from compaction.session import SessionMemory

log = structlog.get_logger()

# How often to see to the room: measure, store what waits, and end what has reached a limit.
CHECK_ROOM_S = 5.0
# How often Discord is asked what newcomers and what all people present may do.
CHECK_NEWCOMERS_S = 2.0
REFRESH_RIGHTS_S = 30.0
# At the end: how long storing what people said about themselves may take.
UPKEEP_S = 4.0


class Room:
    """A voice session in `place`. Make a new one for each start.

    *Ownership*: the supervisor runs `run` in a task. *Cancellation*: stored turns stay stored, and the session stays
    open for the next room.
    """

    def __init__(self, place: Place, services: RoomServices, listen: ListenRequest | None = None) -> None:
        """`listen`: the bot only writes down there."""
        self._place = place
        self._listen = listen
        self._writer: TranscriptWriter | None = None
        self._live_message: LiveMessage | None = None
        self._faults = RoomFaults()
        self._services = services
        self._clock = services.clock
        self._observe = services.observe
        self._opened = asyncio.Event()
        self._closing: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        # Discord limits how fast people come and go.
        self._membership_changes: asyncio.Queue[MembershipChange] = asyncio.Queue()
        self._opened_at = self._clock.monotonic()
        self._memory: SessionMemory | None = None
        self._upkeep: MemoryUpkeep | None = None
        self._conversation: Conversation | None = None
        self._link: Link | None = None
        self._announcer: Announcer | None = None
        # Nobody is heard before the notice is given. The connection's thread reads this.
        self._notice_given = False

    # -- what the supervisor asks ---------------------------------------------------------------------------

    @property
    def opened(self) -> asyncio.Event:
        """Set when the bot has joined the channel and receives its sound."""
        return self._opened

    async def run(self) -> str:
        """Run until closed and return the reason. Raises `LinkError`, `StoreError`, or the error of the part that
        failed; `StaleOwnerError` if another process has taken the room over.
        """
        opened = await self._services.sessions.open(
            guild_id=self._place.guild_id,
            channel_id=self._place.channel_id,
            resume_within_s=RESUME_WITHIN_S,
        )
        session_id = opened.session.id
        with structlog.contextvars.bound_contextvars(session_id=session_id, guild_id=self._place.guild_id):
            async with self._services.open_memory(session_id, opened.claim, self._on_compaction) as memory:
                self._memory = memory
                self._upkeep = self._services.open_upkeep(session_id, opened.claim, memory)
                await self._remember_listening(session_id)
                guild = await self._services.participation.begin_session(
                    self._place.guild_id, session_id, listens_only=self._listen is not None
                )
                memory.withhold(guild.opted_out_ids)
                with (
                    self._services.measure() as measure,
                    self._services.show_live(session_id, self._place, memory, guild) as show,
                    self._open_screens(session_id, memory) as screens,
                ):
                    for observe in (measure, show, self._count):
                        self._services = self._services.also_observed_by(observe)
                    self._observe = self._services.observe
                    conversation = self._conversation = self._new_conversation(session_id, memory, guild)
                    reason = "crashed"
                    try:
                        reason = await self._run_in_channel(opened, conversation, screens, guild)
                        if reason != HANDED_OVER and await self._end_session(memory, reason):
                            await post_recap(session_id, self._place, self._services, reason=reason)
                    finally:
                        self._observe(events.RoomClosed(session_id, reason, self._clock.monotonic()))
                return reason

    def close(self, reason: str) -> None:
        """Ask the room to end in order. `run` then returns `reason`."""
        if not self._closing.done():
            self._closing.set_result(reason)

    def on_membership(self, change: MembershipChange) -> None:
        self._membership_changes.put_nowait(change)
        if change.joined and self._announcer is not None:
            self._announcer.on_joined()

    async def play_sample(self, voice: EmbeddedVoice) -> Text | None:
        if self._conversation is None or not self._opened.is_set():
            return status_before_opening(self._place)
        async with self._services.using_voice(voice) as synthesizer:
            return await self._conversation.play_sample(voice.sample, synthesizer)

    def status(self) -> Text:
        """Return what /status says."""
        if self._memory is None or self._conversation is None or self._link is None or not self._opened.is_set():
            return status_before_opening(self._place)
        now = self._clock.monotonic()
        return room_status(
            self._place,
            self._conversation,
            self._memory,
            self._link,
            health=self._services.health(),
            open_s=now - self._opened_at,
            now=now,
        )

    def faults(self) -> list[HealthFault]:
        """Return why nobody is heard here, nobody hears the bot, or nothing is stored. Nothing is wrong before the room
        is open.
        """
        if self._link is None or not self._opened.is_set():
            return []
        return self._faults.faults(
            self._link, audible=self._place.audible, speaks=self._listen is None, now=self._clock.monotonic()
        )

    # -- life -----------------------------------------------------------------------------------------------

    def _new_conversation(
        self, session_id: SessionId, memory: SessionMemory, guild: GuildParticipation
    ) -> Conversation:
        here = RecallScope(session_id, self._place.guild_id, self._place.channel_id)
        return Conversation(
            self._place,
            self._services,
            session_id=session_id,
            guild=guild,
            memory=memory,
            upkeep=self._upkeep,
            quoting=self._services.open_quoting(here, self._place),
            toolbox=self._services.open_toolbox(here, self._place),
            report=self._report,
        )

    def _open_screens(self, session_id: SessionId, memory: SessionMemory) -> AbstractContextManager[RoomScreens | None]:
        if self._services.screens is None:
            return nullcontext()
        return self._services.screens.room_for(session_id, self._place, memory=memory, observer=self)

    async def _run_in_channel(
        self, opened: OpenedSession, conversation: Conversation, screens: RoomScreens | None, guild: GuildParticipation
    ) -> str:
        """Join the channel and run until asked to leave; return the reason."""
        claim_watch = ClaimWatch(self._services.sessions, opened.claim, self._clock)
        connection = self._place.connect(
            conversation.playback,
            conversation.hear,
            excludes=self._excludes_sound,
            on_change=self._on_link_change,
            is_owner=claim_watch.is_owner,
            claim=opened.claim.number,
        )
        notice = self._services.notice.for_room(self._settings.notice, listen=self._listen)
        announcer = self._announcer = Announcer(
            self._place, notice, speak=conversation.speak_notice, clock=self._clock, asks=guild.asks
        )
        async with connection as link, self._shown_as_listening():
            self._link = link
            await announcer.begin()
            self._notice_given = True
            async with asyncio.TaskGroup() as tasks:
                checks = self._check_room(link, conversation, opened, screens)
                running = [
                    tasks.create_task(run_for_room(conversation.run()), name="conversation"),
                    tasks.create_task(run_for_room(self._record_membership(conversation)), name="membership"),
                    tasks.create_task(run_for_room(checks), name="room-check"),
                    tasks.create_task(run_for_room(self._watch_link(link, claim_watch)), name="link"),
                    tasks.create_task(run_for_room(self._tell_newcomers(announcer)), name="notices"),
                    tasks.create_task(run_for_room(self._refresh_rights()), name="rights"),
                    tasks.create_task(run_for_room(claim_watch.run()), name="claim"),
                ]
                if self._upkeep is not None:
                    running.append(tasks.create_task(run_for_room(self._upkeep.run()), name="memory-upkeep"))
                if screens is not None:
                    running.append(tasks.create_task(run_for_room(screens.run()), name="screens"))
                before = guild.costs.total
                live = self._live_message = LiveMessage(
                    self._place,
                    doing=lambda: conversation.doing,
                    cost=lambda: guild.costs.total - before,
                    hidden=conversation.hides,
                    clock=self._clock,
                )
                if self._listen is not None:
                    self._writer = TranscriptWriter(
                        self._place,
                        self._listen,
                        excludes=conversation.hides,
                        clock=self._clock,
                        read=lambda: read_transcript(opened.session, self._place, self._services),
                    )
                    running.append(
                        tasks.create_task(run_for_room(self._write_transcript(self._writer)), name="transcript")
                    )
                if self._settings.live_message:
                    running.append(tasks.create_task(run_for_room(live.run()), name="live-message"))
                self._open(opened)
                reason = await self._closing
                await conversation.finish(process_ends=reason in {PROCESS_ENDS, HANDED_OVER})
                if screens is not None:
                    await screens.finish()
                while not self._membership_changes.empty():
                    await conversation.membership.handle(self._membership_changes.get_nowait(), room_ends=True)
                await conversation.membership.record_gathered(room_ends=True)
                for task in running:
                    task.cancel()
                # The next process goes on with what is shown of the session.
                if self._writer is not None and reason != HANDED_OVER:
                    await self._writer.finish()
                await live.finish(session_ends=reason != HANDED_OVER)
            self._report_link(link)
            self._report_queues(link, conversation, screens)
        return reason

    @asynccontextmanager
    async def _shown_as_listening(self) -> AsyncIterator[None]:
        """Remove the mark that the bot listens when the block ends. The announcer sets it."""
        try:
            yield
        finally:
            await self._place.show_listening(on=False)

    async def _tell_newcomers(self, announcer: Announcer) -> None:
        """Give the notice to people who come later. Leave if that is impossible."""
        try:
            await announcer.run()
        except NotAnnouncedError as error:
            self._notice_given = False
            self._report("notice", error)
            await self._place.write(Text("I am leaving. {why}", why=sentence_of(error)))
            self.close("not_announced")

    def _open(self, opened: OpenedSession) -> None:
        self._opened_at = self._clock.monotonic()
        log.info("room_opened", channel_id=self._place.channel_id, resumed=opened.resumed)
        self._opened.set()
        self._observe(
            events.RoomOpened(
                opened.session.id, self._place.guild_id, self._place.channel_id, opened.resumed, self._opened_at
            )
        )
        if self._upkeep is not None:
            self._upkeep.on_join(str(person.id) for person in self._place.members())

    async def _end_session(self, memory: SessionMemory, reason: str) -> bool:
        """Store the end of the session, and return whether that was possible."""
        if self._upkeep is not None:
            await self._upkeep.finish(within_s=UPKEEP_S)
        try:
            await memory.end()
        except StoreError as error:
            # The turns are stored already; the next process ends or resumes the session.
            self._report("session", error)
            return False
        log.info("session_ended", reason=reason, total_turns=memory.total_turns, cursor=memory.cursor)
        return True

    async def _record_membership(self, conversation: Conversation) -> None:
        while True:
            await conversation.membership.handle(await self._membership_changes.get())

    async def _remember_listening(self, session_id: SessionId) -> None:
        """Store that the bot only writes down in this session, or find that it did before a crash of the process."""
        settings = self._settings
        stored = settings.listen_only
        if self._listen is None and stored is not None and stored.session_id == session_id:
            self._listen = ListenRequest(stored.target, stored.channel_id)
        listen = self._listen
        wanted = None if listen is None else ListenOnly(session_id, listen.target, listen.channel_id)
        if wanted != stored:
            await self._services.servers.change(self._place.guild_id, replace(settings, listen_only=wanted), by=None)

    async def _write_transcript(self, writer: TranscriptWriter) -> None:
        """Write down what is said. Leave if there can be no thread: nobody wants to be heard for nothing."""
        try:
            await writer.run()
        except ChatError as error:
            self._report("transcript", error)
            await self._place.write(Text("I am leaving. {why}", why=sentence_of(error)))
            self.close("no_transcript")

    @property
    def _settings(self) -> ServerSettings:
        """What the server has chosen, now."""
        return self._services.servers.of(self._place.guild_id)

    async def _check_room(
        self, link: Link, conversation: Conversation, opened: OpenedSession, screens: RoomScreens | None
    ) -> None:
        """At intervals, report the connection and the queues, record gathered comings and goings, store what the
        database has refused before, let the upkeep see whether another process has changed the memory, and close the
        room if the session has reached a limit.
        """
        limits = SessionLimits(
            started_at=opened.session.started_at, leave_when_empty_s=self._services.room.leave_when_empty_s
        )
        while True:
            await self._clock.sleep(CHECK_ROOM_S)
            self._report_link(link)
            self._report_queues(link, conversation, screens)
            await conversation.membership.record_gathered()
            await self._store_waiting()
            if self._upkeep is not None:
                self._upkeep.on_turn()
            accompanied = any(not person.is_bot for person in self._place.members())
            now = self._clock.monotonic()
            if reached := limits.check(self._settings, accompanied=accompanied, epoch=self._clock.now(), now=now):
                if reached.sentence is not None:
                    await self._place.write(reached.sentence)
                self.close(reached.reason)
                return

    async def _store_waiting(self) -> None:
        """Store what the database has refused before, if it takes it now."""
        assert self._memory is not None, "the memory is open while the room runs"
        waiting = self._memory.unstored_items
        try:
            await self._memory.store_waiting()
        except StoreError:
            # The log has the first refusal.
            self._faults.unstored = True
            return
        if self._faults.unstored:
            log.info("turns_stored_again", count=waiting)
        self._faults.unstored = False

    async def _refresh_rights(self) -> None:
        """Keep what the people present may do up to date: of newcomers soon, of everybody at intervals."""
        asked_at = float("-inf")
        while True:
            due = self._clock.monotonic() - asked_at >= REFRESH_RIGHTS_S
            if due:
                asked_at = self._clock.monotonic()
            await self._place.refresh_rights(newcomers_only=not due)
            await self._clock.sleep(CHECK_NEWCOMERS_S)

    async def _watch_link(self, link: Link, claim_watch: ClaimWatch) -> None:
        """Wait until the connection ends. Close the room if somebody removed the bot, else raise `LinkError`, or
        `StaleOwnerError` if another process has taken the room over: then Discord has ended this connection for that.
        """
        reason = await link.lost()
        await claim_watch.check()
        if link.removed:
            self.close("expelled")
            return
        raise reason

    # -- events ---------------------------------------------------------------------------------------------

    def _excludes_sound(self, user_id: int) -> bool:
        """Return whether a person's packets are dropped unread. Thread-safe."""
        return not self._notice_given or self.excludes(user_id)

    def excludes(self, user_id: int) -> bool:
        return self._conversation is not None and self._conversation.excludes(user_id)

    def on_note(self, note: Note) -> None:
        if self._conversation is not None:
            self._conversation.on_screen_note(note)

    def on_screen_turn(self, turn: Turn) -> None:
        """Pass on a turn, already recorded, about the start or end of a share."""
        if self._conversation is not None:
            self._conversation.on_screen_turn(turn)

    def _count(self, event: events.Event) -> None:
        """Let the live message, the transcript and the room's faults know of an event."""
        self._faults.on_event(event)
        if self._live_message is not None:
            self._live_message.on_event(event)
        if self._writer is not None:
            self._writer.on_event(event)

    def _on_link_change(self) -> None:
        """Tell a break of the connection, or its return, at once and not with the next packet counters."""
        if self._link is not None:
            self._report_link(self._link)

    def _report_link(self, link: Link) -> None:
        self._observe(events.LinkChanged(link.state, link.counters, self._clock.monotonic(), link.round_trip_s))

    def _report_queues(self, link: Link, conversation: Conversation, screens: RoomScreens | None) -> None:
        queues = [link.queue, *conversation.queues, QueueFigures("membership", self._membership_changes.qsize(), None)]
        if self._writer is not None:
            queues.append(self._writer.queue)
        if screens is not None:
            queues.append(screens.queue)
        self._observe(events.QueuesMeasured(tuple(queues), self._clock.monotonic()))

    def _on_compaction(self, event: CompactionEvent) -> None:
        now = self._clock.monotonic()
        match event:
            case FoldLanded():
                if self._upkeep is not None:
                    self._upkeep.on_fold()
                if self._conversation is not None:
                    self._conversation.on_compaction_landed()
                self._observe(
                    events.CompactionLanded(
                        old_cursor=event.old_cursor,
                        new_cursor=event.new_cursor,
                        covered_through_turn=event.covered_through_turn,
                        summary=event.summary,
                        latency_ms=event.latency_ms,
                        degraded=event.degraded,
                        at=now,
                        paragraph_by=event.paragraph_by,
                    )
                )
            case FoldFailed():
                self._observe(events.CompactionFailed(event.cursor, event.error, now, event.latency_ms))
            case _:
                pass

    def _report(self, where: str, error: Exception) -> None:
        log.error("room_problem", where=where, problem=error)
        self._observe(events.Problem(where, sentence_of(error), self._clock.monotonic()))
