"""One room: a voice session in one channel, from joining to leaving.

It opens the session and its memory, makes the conversation, lets `joined_channel` run it, and ends everything in order.
A session outlives a crash: the next room in the channel resumes it.
"""

from __future__ import annotations

import asyncio
from contextlib import nullcontext
from typing import TYPE_CHECKING

import structlog

from bot import events
from bot.room.conversation.conversation import Conversation
from bot.room.endings import CRASHED, HANDED_OVER, RoomEnding
from bot.room.joined_channel import JoinedChannel
from bot.room.listen_only import remembered_request
from bot.room.membership_queue import MembershipQueue
from bot.room.recap import post_recap
from bot.room.room_status import room_status, status_before_opening
from bot.room.services import RoomSession
from bot.room.unfinished_speech import UnfinishedSpeech
from bot.settings import RESUME_WITHIN_S
from bot.texts.text import sentence_of
from compaction.errors import StaleOwnerError, StoreError
from compaction.events import FoldFailed, FoldLanded

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from bot.channel.port import ListenRequest, MembershipChange, Place, UnfinishedWords
    from bot.health import HealthFault
    from bot.memory.upkeep import MemoryUpkeep
    from bot.models.voices import EmbeddedVoice
    from bot.participation.guild_participation import GuildParticipation
    from bot.room.services import RoomServices
    from bot.screen.room import RoomScreens
    from bot.store.sessions import OpenedSession
    from bot.texts.text import Text
    from compaction.events import CompactionEvent
    from compaction.model import Note, SessionId, Turn
    from compaction.session import SessionMemory

log = structlog.get_logger()

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
        self._services = services
        self._clock = services.clock
        self._opened = asyncio.Event()
        self._opened_at = self._clock.monotonic()
        self._ending = RoomEnding()
        self._membership_changes = MembershipQueue()
        self._unfinished = UnfinishedSpeech(place)
        self._memory: SessionMemory | None = None
        self._upkeep: MemoryUpkeep | None = None
        self._conversation: Conversation | None = None
        self._channel: JoinedChannel | None = None
        self._left_session_open = False

    # -- what the supervisor asks ---------------------------------------------------------------------------

    @property
    def opened(self) -> asyncio.Event:
        """Set when the bot has joined the channel and receives its sound."""
        return self._opened

    @property
    def ending(self) -> str | None:
        """Return why the room is ending (one word), by itself or because it was closed; None: it is not. A room that is
        handed over is not.
        """
        return self._ending.reason if self._ending.reason != HANDED_OVER else None

    @property
    def left_session_open(self) -> bool:
        """Return whether the room has ended in order, but could not store the end of its session."""
        return self._left_session_open

    async def run(self) -> str:
        """Run until closed and return the reason. Raises `LinkError`, `StoreError`, or the error of the part that
        failed; `StaleOwnerError` if another process has taken the room over.
        """
        guild = await self._services.participation.of_guild(self._place.guild_id)
        opened = await self._services.memory.sessions.open(
            guild_id=self._place.guild_id,
            channel_id=self._place.channel_id,
            resume_within_s=RESUME_WITHIN_S,
            running=guild.running_session(self._clock.monotonic(), within_s=RESUME_WITHIN_S),
        )
        with structlog.contextvars.bound_contextvars(session_id=opened.session.id, guild_id=self._place.guild_id):
            try:
                await self._end_earlier(opened)
                reason = await self._run_session(opened)
            except Exception:
                await self._discard_unless_used(opened)
                raise
            if reason != HANDED_OVER:
                await self._discard_unless_used(opened)
            return reason

    def close(self, reason: str) -> None:
        """Ask the room to end in order. `run` then returns `reason`."""
        self._ending.ask(reason)

    def is_busy(self) -> bool:
        """Return whether somebody speaks there, or the bot answers."""
        return self._conversation is not None and self._conversation.is_busy()

    def on_membership(self, change: MembershipChange) -> None:
        """Record that somebody came or went."""
        self._membership_changes.add(change)
        if self._channel is not None:
            self._channel.on_membership(change)

    async def play_sample(self, voice: EmbeddedVoice) -> Text | None:
        """Say the voice's sample; return why it was not said, or None. Raises `SynthesisError`."""
        if self._conversation is None or not self._opened.is_set():
            return status_before_opening(self._place)
        async with self._services.using_voice(voice) as synthesizer:
            return await self._conversation.play_sample(voice.sample, synthesizer)

    def status(self) -> Text:
        """Return what /status says."""
        link = None if self._channel is None else self._channel.link
        if self._memory is None or self._conversation is None or link is None or not self._opened.is_set():
            return status_before_opening(self._place)
        now = self._clock.monotonic()
        return room_status(
            self._place,
            self._conversation,
            self._memory,
            link,
            health=self._services.health(),
            open_s=now - self._opened_at,
            now=now,
        )

    def unfinished(self) -> tuple[UnfinishedWords, ...]:
        """Return what people in the room are saying, as far as it is recognised; the latest first."""
        return () if self._conversation is None else self._unfinished.words(self._conversation.hides)

    def faults(self) -> list[HealthFault]:
        """Return why nobody is heard here, nobody hears the bot, or nothing is stored. Nothing is wrong before the room
        is open.
        """
        return [] if self._channel is None or not self._opened.is_set() else self._channel.faults()

    # -- life -----------------------------------------------------------------------------------------------

    async def _run_session(self, opened: OpenedSession) -> str:
        """Run an opened session and end it in order. Returns the reason."""
        session_id = opened.session.id
        async with self._services.memory.open_memory(session_id, opened.claim, self._on_compaction) as memory:
            self._memory = memory
            self._upkeep = self._services.memory.open_upkeep(session_id, opened.claim, memory)
            self._listen = await remembered_request(
                self._listen, session_id, self._place.guild_id, self._services.servers
            )
            guild = await self._services.participation.begin_session(
                self._place.guild_id, session_id, listens_only=self._listen is not None
            )
            memory.withhold(guild.opted_out_ids)
            with (
                self._services.measure() as measure,
                self._services.show_live(session_id, self._place, memory, guild) as show,
                self._open_screens(session_id, memory) as screens,
            ):
                for observe in (measure, show, self._on_event):
                    self._services = self._services.also_observed_by(observe)
                reason = CRASHED
                try:
                    reason = await self._run_in_channel(opened, memory, guild, screens)
                    if reason != HANDED_OVER and await self._end_session(memory, reason):
                        await post_recap(session_id, self._place, self._services, reason=reason)
                finally:
                    guild.ran_until = self._clock.monotonic()
                    self._observe(events.RoomClosed(session_id, reason, self._clock.monotonic()))
            return reason

    async def _end_earlier(self, opened: OpenedSession) -> None:
        """End what earlier rooms have left open in other channels: a server has one room at a time, and none of them
        goes on. The bot would come back there at a later start.
        """
        for each in await self._services.memory.sessions.end_open(self._place.guild_id, but=opened.session.id):
            log.info("open_session_ended", ended_session_id=each)

    async def _discard_unless_used(self, opened: OpenedSession) -> None:
        """Delete the session that this room began, if the bot never joined.

        One that it resumed is kept, also if an earlier room that never joined could not delete it: nothing stored says
        so. It ends as any session does that has been silent for too long (`Sessions.open`), or is deleted after a week
        (`bot.memory.retention`).
        """
        if opened.resumed or self._opened.is_set():
            return
        try:
            await self._services.memory.sessions.discard(opened)
        except (StoreError, StaleOwnerError) as error:
            log.warning("session_not_discarded", problem=error)

    def _open_screens(self, session_id: SessionId, memory: SessionMemory) -> AbstractContextManager[RoomScreens | None]:
        if self._services.screens is None:
            return nullcontext()
        return self._services.screens.room_for(session_id, self._place, memory=memory, observer=self)

    async def _run_in_channel(
        self, opened: OpenedSession, memory: SessionMemory, guild: GuildParticipation, screens: RoomScreens | None
    ) -> str:
        """Join the channel and run until asked to leave; return the reason."""
        session = RoomSession(
            opened, memory=memory, upkeep=self._upkeep, guild=guild, screens=screens, listen=self._listen
        )
        self._conversation = Conversation(self._place, self._services, session, report=self._report)
        self._channel = JoinedChannel(
            self._place,
            self._services,
            session,
            self._conversation,
            membership_changes=self._membership_changes,
            ending=self._ending,
            report=self._report,
        )
        return await self._channel.run(lambda: self._on_opened(opened))

    def _on_opened(self, opened: OpenedSession) -> None:
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
            # Whoever runs the room ends the session once the database answers, unless the next process resumes it.
            self._left_session_open = True
            self._report("session", error)
            return False
        log.info("session_ended", reason=reason, total_turns=memory.total_turns, cursor=memory.cursor)
        return True

    # -- events ---------------------------------------------------------------------------------------------

    def excludes(self, user_id: int) -> bool:
        return self._conversation is not None and self._conversation.excludes(user_id)

    def on_note(self, note: Note) -> None:
        if self._conversation is not None:
            self._conversation.on_screen_note(note)

    def on_screen_turn(self, turn: Turn) -> None:
        """Pass on a turn, already recorded, about the start or end of a share."""
        if self._conversation is not None:
            self._conversation.on_screen_turn(turn)

    def _on_event(self, event: events.Event) -> None:
        self._unfinished.on_event(event)
        if self._channel is not None:
            self._channel.on_event(event)

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
                        at=now,
                    )
                )
            case FoldFailed():
                self._observe(events.CompactionFailed(event.cursor, event.error, now, event.latency_ms))
            case _:
                pass

    def _report(self, where: str, error: Exception) -> None:
        log.error("room_problem", where=where, problem=error)
        self._observe(events.Problem(where, sentence_of(error), self._clock.monotonic()))

    def _observe(self, event: events.Event) -> None:
        self._services.observe(event)
