"""One voice session: the bot's stay in one channel (`stay`) with one stored session.

It opens the stored session and its memory, makes the conversation, joins the channel, and ends everything in order. A
stored session outlives a crash: the next `Session` in the channel resumes it.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

import structlog

from bot import events
from bot.room.channel_work import joined, shown_as_listening
from bot.room.conversation.conversation import Conversation
from bot.room.endings import CRASHED, EXPELLED, HANDED_OVER, RoomEnding
from bot.room.listen_only import remembered_request
from bot.room.posted_messages import post_recap
from bot.room.room_status import status_before_opening
from bot.room.services import SessionParts
from bot.room.stay import RoomStay
from bot.room.stored_session import compaction_event, discard_unused, end_earlier
from bot.settings import RESUME_WITHIN_S
from bot.texts.text import sentence_of
from compaction.errors import StoreError
from compaction.events import FoldLanded
from voice.errors import RemovedFromChannelError

if TYPE_CHECKING:
    from bot.channel.port import ListenRequest, MembershipChange, Place, TypedMessage, UnfinishedWords
    from bot.health import HealthFault
    from bot.memory.upkeep import MemoryUpkeep
    from bot.models.voices import EmbeddedVoice
    from bot.room.services import RoomServices
    from bot.store.sessions import OpenedSession
    from bot.texts.text import Text
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

    def __init__(self, place: Place, services: RoomServices, listen: ListenRequest | None = None) -> None:
        self._place = place
        self._listen = listen
        self._services = services
        self._clock = services.clock
        # Set when the bot has joined the channel and receives its sound.
        self.opened = asyncio.Event()
        # Whether the session has ended in order, but its end could not be stored.
        self.left_session_open = False
        self._ending = RoomEnding()
        self._upkeep: MemoryUpkeep | None = None
        # None before the memory is open.
        self._stay: RoomStay | None = None

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
        return self._stay is not None and self._stay.conversation.is_busy()

    def on_membership(self, change: MembershipChange) -> None:
        """Somebody came into the channel, or left it. Does not wait. Who is there when it opens is known then."""
        if self._stay is not None:
            self._stay.on_membership(change)

    async def take_typed(self, message: TypedMessage) -> Text | None:
        """Answer what somebody has typed to the bot, in writing and later; return why it does not, or None."""
        if self._stay is None or not self.opened.is_set():
            return status_before_opening(self._place)
        return await self._stay.conversation.typed_talk.take(message)

    async def play_sample(self, voice: EmbeddedVoice) -> Text | None:
        """Say the voice's sample; return why it was not said, or None. Raises `SynthesisError`."""
        if self._stay is None or not self.opened.is_set():
            return status_before_opening(self._place)
        async with self._services.using_voice(voice) as synthesizer:
            return await self._stay.conversation.play_sample(voice.sample, synthesizer)

    def status(self) -> Text:
        """Return what /status says."""
        return status_before_opening(self._place) if self._stay is None else self._stay.status()

    def unfinished(self) -> tuple[UnfinishedWords, ...]:
        """Return what people are saying, as far as it is recognised; the latest first."""
        return () if self._stay is None else self._stay.unfinished()

    def faults(self) -> list[HealthFault]:
        """Return what is wrong in the open room. Nothing is wrong before it is open."""
        return [] if self._stay is None else self._stay.faults()

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
                stay = self._stay = RoomStay(
                    self._place,
                    self._services,
                    parts,
                    conversation,
                    sharing,
                    opened=self.opened,
                    ending=self._ending,
                    report=self._report,
                )
                link = await joined(stack, stay.connection(), self._ending)
                if link is None:
                    return await self._ending.wait()
                await stack.enter_async_context(shown_as_listening(self._place, self._ending))
                return await stay.run(link)
        except RemovedFromChannelError:
            self._ending.ask(EXPELLED)
            return await self._ending.wait()

    # -- events ---------------------------------------------------------------------------------------------

    def _on_event(self, event: events.Event) -> None:
        if self._stay is not None:
            self._stay.on_event(event)

    def _on_compaction(self, event: CompactionEvent) -> None:
        if isinstance(event, FoldLanded):
            if self._upkeep is not None:
                self._upkeep.wake()
            if self._stay is not None:
                self._stay.conversation.on_compaction_landed()
        if (seen := compaction_event(event, self._clock.monotonic())) is not None:
            self._services.observe(seen)

    def _report(self, where: str, error: Exception) -> None:
        log.error("room_problem", where=where, problem=error)
        self._services.observe(events.Problem(where, sentence_of(error), self._clock.monotonic()))
