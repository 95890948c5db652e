"""Publishes a room's state and events to the gateway process: what /status, monitoring and the dashboard show of it."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from bot import events
from bot.remote.messages.event_messages import event_message
from bot.remote.messages.room_messages import CostTold, MemoryLook, NoticeTold, RoomLook, SessionBegun

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from bot.channel.port import Place
    from bot.health import Health
    from bot.participation.costs import Cost
    from bot.participation.guild_participation import GuildParticipation
    from bot.remote.link.gateway_link import GatewayLink
    from bot.room.port import SupervisedRoom
    from compaction.model import SessionId
    from compaction.session import SessionMemory


class Report(Protocol):
    """Tells the gateway process something that is due now."""

    def __call__(self, *, ending: bool) -> None:
        """Tell it. `ending`: the room has ended, so this is the last time."""


class RoomPublisher:
    """Tells the gateway process at the other end of `link` about one room. `health`: of this process. `reports`: tell
    more of the process, each time the state is told and when the room has ended.
    """

    def __init__(self, link: GatewayLink, health: Health, reports: Sequence[Report] = ()) -> None:
        self._link = link
        self._health = health
        self._reports = reports
        self._room: SupervisedRoom | None = None
        self._guild: GuildParticipation | None = None
        self._memory: SessionMemory | None = None
        self._told_memory: MemoryLook | None = None

    def begin(self, room: SupervisedRoom) -> None:
        """Be about this room."""
        self._room = room

    def end(self) -> None:
        """Tell for the last time what the process has to report."""
        self._report(ending=True)

    @contextmanager
    def show(
        self, session_id: SessionId, place: Place, memory: SessionMemory, guild: GuildParticipation
    ) -> Iterator[events.Observer]:
        """Tell that the session has begun, and the room's events while the block runs; see `RoomServices.show_live`."""
        del place
        self._memory, self._guild = memory, guild
        self._tell_memory()
        self._link.tell(SessionBegun(session_id, guild.listens_only))

        def observe(event: events.Event) -> None:
            if isinstance(event, events.CompactionLanded):
                # The memory is still reporting the compaction; look at it when it has finished.
                asyncio.get_running_loop().call_soon(self._tell_event, event)
                return
            if isinstance(event, events.TurnRecorded):
                event = replace(event, turn=memory.allowed_part(event.turn))
            self._tell_event(event)

        try:
            yield observe
        finally:
            self._memory = None

    def tell_state(self) -> None:
        """Tell how the room and its memory are, and what the process has to report."""
        assert self._room is not None, "begun"
        found = [*self._room.faults(), *self._health.faults()]
        faults = tuple((fault.kind, str(fault.sentence)) for fault in found)
        forgotten = frozenset(() if self._guild is None else self._guild.consent.forgotten_until)
        room = self._room
        self._link.tell(RoomLook(room.opened.is_set(), room.status(), faults, forgotten, room.ending))
        self._tell_memory()
        self._report(ending=False)

    def tell_cost(self, cost: Cost) -> None:
        """Tell what an answer has cost."""
        self._link.tell(CostTold(cost))

    def tell_notice(self, guild: GuildParticipation) -> None:
        """Tell who has had the notice."""
        consent = guild.consent
        self._link.tell(NoticeTold(consent.session_id or "", consent.notice, consent.told))

    def on_new_gateway(self) -> None:
        """Handle that another gateway process asks, which knows nothing of what was told."""
        self._told_memory = None

    def _report(self, *, ending: bool) -> None:
        for report in self._reports:
            report(ending=ending)

    def _tell_event(self, event: events.Event) -> None:
        if isinstance(event, events.TurnRecorded | events.CompactionLanded):
            self._tell_memory()
        self._link.tell(event_message(event))
        if isinstance(event, events.RoomOpened | events.TurnRecorded):
            self.tell_state()

    def _tell_memory(self) -> None:
        """Tell what the dashboard shows of the memory, if it has changed."""
        memory = self._memory
        if memory is None:
            return
        window, summary = memory.window, memory.summary
        look = MemoryLook(
            mode=memory.mode,
            total_turns=memory.total_turns,
            cursor=memory.cursor,
            window_from=window[0].seq if window else memory.total_turns,
            unfolded=len(window),
            summary=None if summary is None else summary.text,
            external_changes=memory.external_changes,
        )
        if look != self._told_memory:
            self._told_memory = look
            self._link.tell(look)
