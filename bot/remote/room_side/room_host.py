"""One seat in a room's process: takes one room from the gateway process, runs it, and tells what becomes of it.

What people change reaches the same objects as in one process. `room_publisher` tells what others want to know of the
room, every second.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol

import structlog

from bot.background_task import background_task
from bot.errors import BotError, SetupError, first_cause
from bot.models.voices import NO_SUCH_VOICE, find_voice
from bot.participation.costs import CostLedger
from bot.participation.session_consent import SessionConsent
from bot.remote.messages.participation_state import apply_participation, participation_state
from bot.remote.messages.room_messages import (
    ChoiceChanged,
    CloseRoom,
    MemberMoved,
    NoMoreRooms,
    OpenRoom,
    PlaySample,
    ReadMemoryAgain,
    ReportRoom,
    RoomOver,
    RoomReport,
    ServersChanged,
    StoreWaiting,
    TakeOver,
)
from bot.remote.messages.wire_error import error_to_wire
from bot.remote.room_side.handover_pause import SpeakingRoom, until_pause
from bot.room.endings import CRASHED, HANDED_OVER, TAKEN_OVER
from bot.room.port import SupervisedRoom
from bot.texts.text import Text
from compaction.errors import StaleOwnerError
from voice.cancellation import fail_if_cancelled_inside

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from weakref import WeakSet

    from bot.channel.port import Person
    from bot.clock import Clock
    from bot.health import Health
    from bot.memory.people import PeopleBook
    from bot.memory.personal_data import RoomMemory
    from bot.models.loaded_voices import LoadedVoices
    from bot.participation.all_guilds import GuildParticipations
    from bot.participation.guild_participation import GuildParticipation
    from bot.remote.link.gateway_link import GatewayLink
    from bot.remote.room_side.replicated_guild import (
        ReplicatedChoices,
        ReplicatedConsent,
        ReplicatedOptOuts,
        ReplicatedServerSettings,
    )
    from bot.remote.room_side.room_publisher import RoomPublisher
    from bot.server_settings import ServerSettingsBook

log = structlog.get_logger()

LOOK_EVERY_S: Final = 1.0
# The gateway process may be started again meanwhile. Then nobody tells the room any more who came or opted out.
GATEWAY_AWAY_S: Final = 60.0
# A process without a room has nothing to wait for: the next gateway process starts its own. One of another machine
# waits as long as a room does, and offers itself to the next one.
UNUSED_AWAY_S: Final = 5.0
GRACE_S: Final = 2.0
# The gateway process may be busy ending other rooms.
OVER_WITHIN_S: Final = 5.0

# Why a process ends that has had no room.
NOT_WANTED: Final = "not_wanted"
BROKEN = Text("A part of the process that ran this room has ended or hangs; the log says why.")
HAS_ROOM = Text("This process has a room already.")
NO_ROOM = Text("This process has no open room.")


@dataclass(frozen=True, slots=True)
class ReplicatedStores:
    """What the gateway process tells the room's parts, and the parts that read words again when some are deleted."""

    choices: ReplicatedChoices
    opt_outs: ReplicatedOptOuts
    consent: ReplicatedConsent
    replicated_servers: ReplicatedServerSettings
    servers: ServerSettingsBook
    people: PeopleBook
    upkeeps: WeakSet[RoomMemory]


class HostedRoom(SupervisedRoom, SpeakingRoom, Protocol):
    """A room in its own process. `bot.room.room.Room` implements it."""

    async def wait_ending(self) -> None:
        """Wait until the room begins to end."""


class HostedPlace(Protocol):
    """The room's channel, for who runs the room. `RemotePlace` implements it."""

    async def begin(self, guild_id: int, channel_id: int) -> None:
        """Be this channel, once it is known."""

    def hand_over(self) -> None:
        """Leave the bot in the channel when the room ends, for the next process."""

    def quiet_s(self) -> float:
        """Return for how many seconds nobody has spoken, the bot included."""

    @property
    def members_before(self) -> tuple[Person, ...]:
        """Return who was in the channel when the link was lost."""

    @property
    def shows_listening(self) -> bool:
        """Return whether the room wants people to see that the bot listens."""


@dataclass(slots=True)
class _Running:
    """The room, once it is known which one."""

    told: OpenRoom
    room: HostedRoom
    guild: GuildParticipation


class RoomHost:
    """Runs the room of one seat of this process, once. `participation`: over `stores`. `new_room`: makes the room in
    `place`, once it is known which one.

    `link`: to the gateway process. Enter it after this was made, so that nothing is asked before somebody answers.
    """

    def __init__(
        self,
        link: GatewayLink,
        stores: ReplicatedStores,
        publisher: RoomPublisher,
        *,
        participation: GuildParticipations,
        place: HostedPlace,
        new_room: Callable[[OpenRoom], Awaitable[HostedRoom]],
        voices: LoadedVoices,
        health: Health,
        clock: Clock,
    ) -> None:
        self._link = link
        self._stores = stores
        self._publisher = publisher
        self._participation = participation
        self._place = place
        self._new_room = new_room
        self._voices = voices
        self._health = health
        self._clock = clock
        self._running: asyncio.Future[_Running] = asyncio.get_running_loop().create_future()
        # Whether the gateway process wants the room to end.
        self._is_closed = False
        # Set once the process has had its last room.
        self._dismissed = asyncio.Event()
        handlers = link.handlers
        handlers.answer(ReportRoom, self._report)
        handlers.answer(OpenRoom, self._open)
        handlers.answer(TakeOver, self._take_over)
        handlers.answer(ReadMemoryAgain, self._read_memory_again)
        handlers.answer(StoreWaiting, self._store_waiting)
        handlers.answer(PlaySample, self._play_sample)
        handlers.hear(NoMoreRooms, lambda _: self._dismissed.set())
        handlers.hear(CloseRoom, self._on_close)
        handlers.hear(MemberMoved, self._on_member_moved)
        handlers.hear(ChoiceChanged, self._on_choice)
        handlers.hear(ServersChanged, self._on_servers)

    # -- life -------------------------------------------------------------------------------------------------------

    async def run(self, stop: asyncio.Event, on_room: Callable[[], None] = lambda: None) -> str:
        """Wait for a room, run it, tell how it ended and return that. `stop`: hand the room over. `on_room`: is called
        when there is one.
        """
        stopping = asyncio.create_task(stop.wait(), name="until-stopped")
        dismissed = asyncio.create_task(self._dismissed.wait(), name="until-dismissed")
        refused = asyncio.create_task(self._link.refused(), name="until-refused")
        try:
            if not await self._is_wanted(stopping, dismissed, refused):
                return NOT_WANTED
            on_room()
            running = self._running.result()
            async with background_task(self._hand_over(running.room, stopping, refused), name="hand-over"):
                return await self._run(running)
        finally:
            for waiting in (stopping, dismissed, refused):
                waiting.cancel()

    async def _is_wanted(self, *endings: asyncio.Future[Any]) -> bool:
        """Wait until this process has a room, and return True; False if it never will have one."""
        most_away_s = GATEWAY_AWAY_S if self._link.room.machine else UNUSED_AWAY_S
        while not self._running.done():
            away_since = self._link.away_since
            away = away_since is not None and self._clock.monotonic() - away_since >= most_away_s
            if away or any(ending.done() for ending in endings) or self._health.needs_restart:
                return False
            await asyncio.wait({self._running, *endings}, timeout=LOOK_EVERY_S, return_when=asyncio.FIRST_COMPLETED)
        return True

    async def _hand_over(self, room: HostedRoom, stopping: asyncio.Future[Any], refused: asyncio.Future[Any]) -> None:
        """Close the room once this process has to end, so that the next one goes on with the session."""
        await asyncio.wait({stopping, refused}, return_when=asyncio.FIRST_COMPLETED)
        # A service manager may have told both processes; then the gateway process knows why the room ends.
        await self._clock.sleep(GRACE_S)
        # One that was refused has no time: another process may run the room already.
        if not refused.done():
            await until_pause(room, self._place.quiet_s, self._clock, is_over=lambda: self._is_closed or refused.done())
        if not self._is_closed:
            self._place.hand_over()
        log.info("room_hands_over", is_refused=refused.done())
        room.close(HANDED_OVER)

    async def _run(self, running: _Running) -> str:
        try:
            async with asyncio.TaskGroup() as tasks:
                looking = tasks.create_task(fail_if_cancelled_inside(partial(self._look, running)), name="room-look")
                telling = fail_if_cancelled_inside(partial(self._tell_ending, running.room))
                watching = tasks.create_task(telling, name="room-ending")
                reason = await running.room.run()
                looking.cancel()
                watching.cancel()
            over = RoomOver(reason, left_session_open=running.room.left_session_open)
        except Exception as error:
            cause = first_cause(error)
            if isinstance(cause, StaleOwnerError):
                over = RoomOver(TAKEN_OVER, error_to_wire(cause))
                log.error("room_taken_over", guild_id=running.told.guild_id, problem=cause)  # noqa: TRY400 - no crash
            else:
                over = RoomOver(CRASHED, error_to_wire(cause))
                log.exception("room_crashed", guild_id=running.told.guild_id, error_class=type(cause).__name__)
        self._publisher.end()
        try:
            await self._link.ask(over, within_s=OVER_WITHIN_S)
        except BotError as error:
            log.warning("room_end_not_told", problem=error)
        return over.reason

    async def _tell_ending(self, room: HostedRoom) -> None:
        """Tell that the room is ending as soon as it is: who calls the bot then gets the next one."""
        await room.wait_ending()
        self._publisher.tell_state()

    async def _look(self, running: _Running) -> None:
        """Tell every second what others want to know. Raises `SetupError` once only a new process helps."""
        while True:
            self._publisher.tell_state()
            await self._clock.sleep(LOOK_EVERY_S)
            if self._health.needs_restart:
                kinds = [fault.kind.value for fault in self._health.faults() if fault.needs_restart]
                log.error("room_process_broken", kind=kinds[0] if kinds else "task")
                raise SetupError(BROKEN)
            away_since = self._link.away_since
            if away_since is not None and self._clock.monotonic() - away_since >= GATEWAY_AWAY_S:
                if not self._is_closed:
                    self._place.hand_over()
                running.room.close(HANDED_OVER)

    # -- what the gateway process asks and tells --------------------------------------------------------------------

    async def _open(self, told: OpenRoom) -> None:
        if self._running.done():
            raise SetupError(HAS_ROOM)
        if self._health.needs_restart:
            raise SetupError(BROKEN)
        stores = self._stores
        stores.consent.asks = told.participation.asks
        stores.opt_outs.told = told.participation.opted_out
        stores.choices.told = told.choice
        self._apply_servers(told.guild_id, told.servers)
        guild = await self._participation.of_guild(told.guild_id)
        now = self._clock.monotonic()
        guild.costs = CostLedger.aged(guild.costs.ceiling, told.costs, now=now, on_add=self._publisher.tell_cost)
        consent = told.participation
        guild.consent = SessionConsent(consent.consented_in, notice=consent.notice, told=consent.told)
        guild.ran_until = None if told.ran_s_ago is None else now - told.ran_s_ago
        guild.unrecorded.restore(told.unrecorded, now)
        guild.on_told = partial(self._publisher.tell_notice, guild)
        apply_participation(told.participation, guild)
        await self._place.begin(told.guild_id, told.channel_id)
        room = await self._new_room(told)
        # From now on it does not offer itself any more.
        self._link.room = replace(
            self._link.room,
            guild_id=told.guild_id,
            channel_id=told.channel_id,
            opened_by=told.opened_by,
            listen=told.listen,
        )
        self._publisher.begin(room)
        self._running.set_result(_Running(told, room, guild))

    async def _report(self, _: ReportRoom) -> RoomReport:
        running = self._running.result() if self._running.done() else None
        room = None if running is None else running.guild.room
        if running is None or room is None:
            raise SetupError(NO_ROOM)
        guild = running.guild
        self._publisher.on_new_gateway()
        return RoomReport(
            session_id=room.session_id,
            listens_only=guild.listens_only,
            participation=participation_state(guild),
            unsaved_silence_by=self._stores.choices.unsaved_by,
            costs=tuple(guild.costs.ages(self._clock.monotonic())),
            members=self._place.members_before,
            shows_listening=self._place.shows_listening,
        )

    async def _take_over(self, told: TakeOver) -> None:
        running = self._running.result()
        guild = running.guild
        apply_participation(told.participation, guild)
        room = guild.room
        if room is not None:
            for person_id in told.forgetting:
                room.on_forgetting(person_id)
            for person_id in told.opted_out:
                room.on_opted_out(person_id)
            if told.stops_speaking:
                room.stop_speaking()
            if told.forgotten:
                room.on_forgotten()
        self._publisher.tell_state()

    async def _read_memory_again(self, _: ReadMemoryAgain) -> None:
        await self._stores.people.reload()
        for upkeep in list(self._stores.upkeeps):
            await upkeep.refresh()

    async def _store_waiting(self, _: StoreWaiting) -> None:
        for upkeep in list(self._stores.upkeeps):
            await upkeep.store_waiting()

    async def _play_sample(self, told: PlaySample) -> Text | None:
        voice = find_voice(told.voice)
        if voice is None:
            return NO_SUCH_VOICE
        await self._voices.load(voice)
        return await self._running.result().room.play_sample(voice)

    def _on_close(self, told: CloseRoom) -> None:
        self._is_closed = True
        self._running.result().room.close(told.reason)

    def _on_member_moved(self, told: MemberMoved) -> None:
        self._running.result().room.on_membership(told.change)

    def _on_choice(self, told: ChoiceChanged) -> None:
        self._stores.choices.told = told.choice

    def _on_servers(self, told: ServersChanged) -> None:
        # After what the room has changed itself, if the answer to that has just come.
        asyncio.get_running_loop().call_soon(self._apply_servers, self._running.result().told.guild_id, told.servers)

    def _apply_servers(self, guild_id: int, servers: str) -> None:
        self._stores.servers.apply(guild_id, self._stores.replicated_servers.tell(guild_id, servers))
