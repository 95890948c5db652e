"""What a room in another process tells of itself: shown, measured and counted here as if it ran in this process."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import structlog

from bot.background_task import logged_task
from bot.channel.participants import name_in
from bot.health import HealthFault
from bot.machine_load import HERE
from bot.remote.gateway_side.reported_memory import ReportedMemory
from bot.remote.messages.event_messages import event_in
from bot.remote.messages.frames import MalformedError
from bot.remote.messages.room_messages import (
    CostTold,
    EventTold,
    MemoryLook,
    NoticeTold,
    RoomLook,
    SessionBegun,
)
from bot.remote.processes.placement import THIS_MACHINE
from bot.room.unfinished_speech import UnfinishedSpeech
from bot.texts.text import Text, joined
from compaction.errors import StoreError
from compaction.model import SessionId

if TYPE_CHECKING:
    import asyncio
    from contextlib import ExitStack

    from bot import events
    from bot.channel.port import Place, UnfinishedWords
    from bot.participation.guild_participation import GuildParticipation
    from bot.remote.gateway_side.gateway_parts import GatewayParts
    from bot.remote.gateway_side.remote_participation import RemoteParticipation
    from bot.remote.link.handlers import Handlers
    from bot.remote.processes.room_seat import RoomSeat

log = structlog.get_logger()

ELSEWHERE = Text("This room runs on the machine {machine}.")


class ReportedRoom:
    """The room in `seat`, as it tells. `participation`: how commands change it, once it has a session.

    `opened`: is set when the room has told that it receives its channel's sound. `shown`: gets what shows and measures
    the room; its owner closes it.
    """

    def __init__(
        self,
        place: Place,
        parts: GatewayParts,
        seat: RoomSeat,
        guild: GuildParticipation,
        participation: RemoteParticipation,
        *,
        opened: asyncio.Event,
        shown: ExitStack,
    ) -> None:
        self.guild = guild
        self.participation = participation
        # None before it has told.
        self.session_id: SessionId | None = None
        self._place = place
        self._parts = parts
        self._seat = seat
        self._opened = opened
        self._shown = shown
        self._look: RoomLook | None = None
        self._memory = ReportedMemory()
        self._unfinished = UnfinishedSpeech(place)
        self._observers: list[events.Observer] = [parts.observe, self._unfinished.on_event]

    def handle(self, handlers: Handlers) -> None:
        """Register the handlers of what the room tells, before it tells anything."""
        handlers.hear(SessionBegun, self._on_begun)
        handlers.hear(RoomLook, self._on_look)
        handlers.hear(MemoryLook, self._memory.tell)
        handlers.hear(EventTold, self._on_event)
        handlers.hear(CostTold, self._on_cost)
        handlers.hear(NoticeTold, self._on_notice)

    def begin(self, told: SessionBegun) -> None:
        """Begin to show a session that the room has had for some time."""
        self._on_begun(told)
        if self._look is not None:
            self._on_look(self._look)

    def make_known_to_commands(self, session_id: str) -> None:
        """From now on commands change this room."""
        self.guild.room = self.participation
        self.participation.session_id = session_id
        self._parts.upkeeps.add(self.participation)

    def release(self) -> None:
        """The room is over: commands change it no more, and another may have its session."""
        if self.guild.room is self.participation:
            self.guild.room = None
        self._parts.upkeeps.discard(self.participation)
        if self.session_id is not None:
            self.guild.ran_until = self._parts.clock.monotonic()
            self._parts.in_use.discard(self.session_id)

    # -- what is asked of it --------------------------------------------------------------------------------

    def status(self) -> Text | None:
        """Return how the room is, and on which machine; None if it has not told."""
        if self._look is None:
            return None
        if self._seat.machine == THIS_MACHINE:
            return self._look.status
        return joined((self._look.status, ELSEWHERE.fill(machine=self._seat.machine)))

    @property
    def ending(self) -> str | None:
        """Return why the room is ending; None: it is not, or has not told."""
        return None if self._look is None else self._look.ending

    def unfinished(self) -> tuple[UnfinishedWords, ...]:
        """Return what people are saying now, as far as it is recognised."""
        return self._unfinished.words(self._hides)

    def _hides(self, user_id: int) -> bool:
        """Return whether nobody is shown what a person says, as the room itself decides (`Conversation.hides`)."""
        return self._look is None or self.guild.excludes(user_id) or user_id in self._look.forgotten

    def faults(self) -> list[HealthFault]:
        """Return what is wrong with the room."""
        return [] if self._look is None else [HealthFault(*each) for each in self._look.faults]

    # -- what it tells --------------------------------------------------------------------------------------

    def _on_begun(self, told: SessionBegun) -> None:
        guild, parts = self.guild, self._parts
        session_id = SessionId(told.session_id)
        if self.session_id is not None or session_id in parts.in_use:
            # Another room has it, or this one has begun: it does not do what a Roomtone does.
            log.error("room_session_refused", guild_id=guild.guild_id, machine=self._seat.machine or HERE)
            self._seat.link.close()
            return
        self.session_id = session_id
        guild.begin_session(session_id, listens_only=told.listens_only)
        self.make_known_to_commands(session_id)
        # The answer to the request to open it may not be handled yet, and the room may be open by the next message.
        self.participation.runs = True
        parts.in_use.add(session_id)
        self._memory.withheld = guild.opted_out_ids
        self._observers.append(
            lambda event: guild.unrecorded.on_event(event, parts.clock.monotonic(), partial(name_in, self._place))
        )
        self._observers.append(self._shown.enter_context(parts.measure()))
        show = parts.show_live(session_id, self._place, self._memory, guild, self._seat.machine)
        self._observers.append(self._shown.enter_context(show))
        # Somebody may have opted out since the room was opened. It hears nobody before this process has answered it
        # (`Place.is_current`, or that the notice is written), so this is in effect by then.
        beginning = logged_task(self._confirm(session_id), name=f"room-begun-{guild.guild_id}")
        self._shown.callback(beginning.cancel)

    async def _confirm(self, session_id: SessionId) -> None:
        await self.participation.confirm()
        try:
            self._memory.speakers |= await self._parts.speakers_of(session_id, self._memory.withheld())
        except StoreError as error:
            log.warning("speakers_unread", session_id=session_id, problem=error)

    def _on_look(self, look: RoomLook) -> None:
        self._look = look
        if look.open and self.session_id is not None:
            self._opened.set()

    def _on_event(self, told: EventTold) -> None:
        try:
            event = event_in(told)
        except MalformedError as error:
            log.warning("room_event_refused", kind=told.kind[:40], problem=error)
            return
        self._memory.hear(event)
        for observe in self._observers:
            observe(event)

    def _on_cost(self, told: CostTold) -> None:
        self.guild.costs.add(told.cost, now=self._parts.clock.monotonic())

    def _on_notice(self, told: NoticeTold) -> None:
        if told.session_id == self.guild.consent.session_id:
            # The session's next room, in whatever process, need not tell them again before it hears them.
            self.guild.tell(told.notice, told.people)
