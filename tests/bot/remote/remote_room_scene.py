"""A room in another process with its gateway process, both with fakes, for the tests of `RemoteRoom`."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, nullcontext
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast
from weakref import WeakSet

from bot import events
from bot.health import FaultKind, Health, HealthFault
from bot.monitoring.metrics import Metrics
from bot.participation.all_guilds import GuildParticipations
from bot.participation.settings import ParticipationSettings
from bot.remote.gateway_side.gateway_parts import GatewayParts
from bot.remote.gateway_side.remote_room import RemoteRoom
from bot.remote.link.hello import RoomIdentity
from bot.remote.processes.adoption import AdoptedRoom
from bot.remote.processes.placement import THIS_MACHINE
from bot.remote.processes.room_child import ENDED
from bot.remote.room_side.replicated_guild import (
    ReplicatedChoices,
    ReplicatedConsent,
    ReplicatedOptOuts,
    ReplicatedServerSettings,
)
from bot.remote.room_side.room_figures import ProcessFigures
from bot.remote.room_side.room_host import (
    ReplicatedStores,
    RoomHost,
)
from bot.remote.room_side.room_log import RoomLog
from bot.remote.room_side.room_publisher import RoomPublisher
from bot.room.endings import RoomEnding
from bot.server_settings import ServerSettingsBook, no_server_settings
from bot.texts.text import Text
from compaction.model import Mode, Seq, SessionId, Turn, TurnKind, TurnPart
from tests.bot.remote.peers import linked, until
from tests.fakes.choices import FakeGuildChoices, FakeOptOuts
from tests.fakes.clock import FakeClock
from tests.fakes.place import FakePlace

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from bot.channel.port import ListenRequest, MembershipChange, Person, UnfinishedWords
    from bot.dashboard.shown_memory import ShownMemory
    from bot.errors import SetupError
    from bot.guild import GuildChoice
    from bot.models.voices import EmbeddedVoice
    from bot.participation.guild_participation import GuildParticipation
    from bot.remote.link.gateway_link import GatewayLink
    from bot.remote.link.message_link import MessageLink
    from bot.remote.messages.room_messages import OpenRoom
    from compaction.errors import StoreError
    from tests.bot.remote.peers import Ends

ADA, BO = 1, 2
NAMES = ("Roomtone",)
SESSION = SessionId("evening")
STATUS = Text("I am in {channel} already. Use /leave first.", channel="Bar")
TURN = Turn(Seq(4), TurnKind.SPEECH, 1.0, 2.5, (TurnPart(str(ADA), "Ada", "The key is under the pot."),))


class WatchedChoices(FakeGuildChoices):
    """Choices that tell who watches them, as `GuildStore` does."""

    def __init__(self) -> None:
        super().__init__()
        self._watchers: list[Callable[[int, GuildChoice], None]] = []

    async def choose(self, guild_id: int, change: Callable[[GuildChoice], GuildChoice], *, by: int) -> GuildChoice:
        """Store, and tell."""
        choice = await super().choose(guild_id, change, by=by)
        for watcher in self._watchers:
            watcher(guild_id, choice)
        return choice

    @contextmanager
    def watched(self, watcher: Callable[[int, GuildChoice], None]) -> Iterator[None]:
        """Call the watcher after each change."""
        self._watchers.append(watcher)
        yield
        self._watchers.remove(watcher)


class DistantRoom:
    """The room in its own process: does what the test wants, and counts what it is told."""

    def __init__(self, house: House, told: OpenRoom) -> None:
        self.house = house
        self.told = told
        self.opened = asyncio.Event()
        self.own_end = RoomEnding()
        self.left_session_open = False
        self.end: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.moves: list[MembershipChange] = []
        self.calls: Counter[str] = Counter()
        self.busy = False
        self.answering = False
        self.observe: events.Observer = events.ignore_event
        self.memory = SimpleNamespace(
            mode=Mode.SUMMARY,
            total_turns=5,
            cursor=2,
            window=[TURN],
            summary=SimpleNamespace(text="Ada hid a key."),
            external_changes=0,
            allowed_part=lambda turn: turn,
        )
        self.guild: GuildParticipation | None = None

    @property
    def session_id(self) -> str:
        """Return the session."""
        return SESSION

    @property
    def ending(self) -> str | None:
        """Return what the test says."""
        return self.own_end.reason

    async def wait_ending(self) -> None:
        """Wait until the test says why the room ends."""
        await self.own_end.wait()

    async def run(self) -> str:
        """Run until the test ends it."""
        listens_only = self.told.listen is not None
        guild = self.guild = await self.house.distant.begin_session(
            self.told.guild_id, SESSION, listens_only=listens_only
        )
        with self.house.publisher.show(SESSION, FakePlace(), cast("Any", self.memory), guild) as self.observe:
            guild.room = self
            self.opened.set()
            self.observe(events.RoomOpened(SESSION, 10, 20, resumed=False, at=1.0))
            return await self.end

    def is_busy(self) -> bool:
        """Return what the test says."""
        return self.busy

    def is_answering(self) -> bool:
        """Return what the test says."""
        return self.answering

    def close(self, reason: str) -> None:
        """End in order."""
        if not self.end.done():
            self.end.set_result(reason)

    def on_membership(self, change: MembershipChange) -> None:
        """Keep the change."""
        self.moves.append(change)

    async def play_sample(self, voice: EmbeddedVoice) -> Text | None:
        """Refuse."""
        return Text("I could not speak in {channel} now.", channel=voice.name)

    def unfinished(self) -> tuple[UnfinishedWords, ...]:
        """Return nothing."""
        return ()

    def status(self) -> Text:
        """Return a sentence."""
        return STATUS

    def faults(self) -> list[HealthFault]:
        """Return one."""
        return [HealthFault(FaultKind.ROOM_MUTE, "Nobody hears me.")]

    def stop_speaking(self) -> None:
        """Count the call."""
        self.calls["stop"] += 1

    def on_opted_out(self, person_id: int) -> None:
        """Count the call, if the person is not heard any more by then."""
        assert self.guild is not None
        self.calls[f"out {person_id} {self.guild.excludes(person_id)}"] += 1

    def on_forgetting(self, person_id: int) -> None:
        """Count the call, and show nothing of the person any more, as `Participation` does."""
        self.calls[f"forgetting {person_id}"] += 1
        assert self.guild is not None
        self.guild.consent.forgotten_until[person_id] = self.house.clock.monotonic()

    def on_forgotten(self) -> None:
        """Count the call."""
        self.calls["forgotten"] += 1

    async def confirm(self) -> None:
        """Return at once."""


class FakeSeat:
    """A seat with one end of a real link. `died`: set once its process is gone."""

    machine: str = THIS_MACHINE
    run_id = "one"
    may_go_on = False

    def __init__(self, link: MessageLink) -> None:
        self.link = link
        self.died = asyncio.Event()
        self.is_handed_back = False

    @property
    def is_open(self) -> bool:
        """Return whether its process answers."""
        return not self.died.is_set()

    async def lost(self) -> Text:
        """Wait until it is gone."""
        await self.died.wait()
        return ENDED

    async def give_up(self) -> None:
        """End it."""
        self.died.set()

    def hand_back(self) -> None:
        """Close the link; the process opens another one."""
        self.is_handed_back = True
        self.link.close()


class House:
    """Both processes. `host`: the room's; `distant`: its participation; `rooms`: what it has made."""

    def __init__(self, ends_room: GatewayLink) -> None:
        self.clock = FakeClock()
        self.metrics = Metrics(Health(self.clock))
        self.choices, self.opt_outs, self.servers = WatchedChoices(), FakeOptOuts(), no_server_settings()
        self.participation = self._new_participation()
        self.distant_choices = ReplicatedChoices(ends_room)
        opt_outs, consent, servers = ReplicatedOptOuts(), ReplicatedConsent(), ReplicatedServerSettings(ends_room)
        self.distant_servers = ServerSettingsBook(servers)
        self.upkeep = SimpleUpkeep()
        people = cast("Any", SimpleNamespace(reload=self.upkeep.refresh))
        stores = ReplicatedStores(
            self.distant_choices,
            opt_outs,
            consent,
            servers,
            self.distant_servers,
            people,
            WeakSet([cast("Any", self.upkeep)]),
        )
        # What the room's process measures itself.
        self.measured = Metrics(Health(self.clock))
        figures = partial(ProcessFigures(self.measured.own_series, self.clock).tell, ends_room)
        self.log = RoomLog(ends_room, self.clock, is_same_log=lambda _: False)
        # Of the room's process.
        health = self.health = Health(self.clock)
        self.publisher = RoomPublisher(ends_room, health, reports=(self.log.tell, figures))
        self.distant = GuildParticipations(
            self.distant_choices,
            opt_outs,
            ParticipationSettings(),
            wake_names=NAMES,
            clock=self.clock,
            asks=consent.asks_on,
        )
        self.rooms: list[DistantRoom] = []
        # Set: the room's process cannot ask the database; no process can be loaded; the gateway process cannot ask.
        self.claim_fails: StoreError | None = None
        self.load_fails: SetupError | None = None
        # Cleared: a process is being loaded.
        self.loads = asyncio.Event()
        self.loads.set()
        self.database_fails: StoreError | None = None
        voices = cast("Any", SimpleNamespace(load=self.upkeep.load))
        # How often the bot was told to stay in the channel.
        self.stays: list[bool] = []
        self.members_before: tuple[Person, ...] = ()
        self.quiet = 0.0
        self.shows_listening = False
        self.host = RoomHost(
            ends_room,
            stores,
            self.publisher,
            participation=self.distant,
            place=self,
            new_room=self._new_room,
            voices=voices,
            health=health,
            clock=self.clock,
        )
        self.seen: list[events.Event] = []
        self.shown: list[tuple[str, ShownMemory]] = []
        # Where its room runs, and on which machines rooms were shown.
        self.machine = THIS_MACHINE
        self.shown_on: list[str] = []
        self.in_use: set[SessionId] = set()
        # The servers whose rooms were made stale.
        self.fenced: list[int] = []
        self.upkeeps: WeakSet[Any] = WeakSet()
        self.seat: FakeSeat | None = None

    def quiet_s(self) -> float:
        """Return what the test says."""
        return self.quiet

    async def begin(self, guild_id: int, channel_id: int) -> None:
        """Be the room's place."""
        assert (guild_id, channel_id) == (10, 20)

    def hand_over(self) -> None:
        """Count the call."""
        self.stays.append(True)

    async def _new_room(self, told: OpenRoom) -> DistantRoom:
        if self.claim_fails is not None:
            raise self.claim_fails
        self.rooms.append(DistantRoom(self, told))
        return self.rooms[-1]

    @contextmanager
    def _show(
        self, session_id: SessionId, _place: object, memory: ShownMemory, _guild: object, machine: str, /
    ) -> Iterator[events.Observer]:
        self.shown_on.append(machine)
        self.shown.append((session_id, memory))
        yield self.seen.append

    def _new_participation(self) -> GuildParticipations:
        return GuildParticipations(
            self.choices,
            self.opt_outs,
            ParticipationSettings(),
            wake_names=NAMES,
            clock=self.clock,
            asks=lambda guild_id: self.servers.of(guild_id).asks,
        )

    def started_again(self) -> None:
        """Let the gateway process be another one, which knows what is stored and nothing else."""
        self.participation = self._new_participation()
        self.in_use, self.upkeeps, self.shown = set(), WeakSet(), []

    def room(
        self,
        link: MessageLink,
        listen: ListenRequest | None = None,
        place: FakePlace | None = None,
        *,
        again: bool = False,
    ) -> RemoteRoom:
        """Return a room at the gateway's end. `again`: it runs already."""
        seat = self.seat = FakeSeat(link)
        seat.machine = self.machine

        @asynccontextmanager
        async def taken(guild_id: int, _adopted: object = None) -> AsyncIterator[FakeSeat]:
            assert guild_id == 10
            await self.loads.wait()
            if self.load_fails is not None:
                raise self.load_fails
            link.on_closed(seat.died.set)
            yield seat

        async def speakers_of(_: SessionId, __: frozenset[str]) -> frozenset[str]:
            return frozenset({str(BO)})

        async def fence(guild_id: int) -> None:
            self.fenced.append(guild_id)

        async def newest_claim(guild_id: int) -> int:
            return 7 * guild_id

        async def require_database() -> None:
            if self.database_fails is not None:
                raise self.database_fails

        parts = GatewayParts(
            processes=cast("Any", SimpleNamespace(taken=taken)),
            participation=self.participation,
            choices=cast("Any", self.choices),
            servers=self.servers,
            clock=self.clock,
            observe=events.ignore_event,
            measure=lambda: nullcontext(events.ignore_event),
            show_live=self._show,
            in_use=self.in_use,
            upkeeps=self.upkeeps,
            speakers_of=speakers_of,
            fence=fence,
            newest_claim=newest_claim,
            require_database=require_database,
            serve=lambda *_: nullcontext(),
            figures=self.metrics.add_machines(self.clock),
            opened_by="mark",
        )
        adopted = AdoptedRoom(RoomIdentity(10, 20), link, lambda: None) if again else None
        return RemoteRoom(place or FakePlace(), parts, listen, adopted=adopted)


class SimpleUpkeep:
    """Counts how often something was read again."""

    def __init__(self) -> None:
        self.reads = 0
        # Cleared: the database takes its time.
        self.answers = asyncio.Event()
        self.answers.set()
        self.loaded: list[object] = []
        # How often what waits was to be stored, and why that fails.
        self.stores = 0
        self.store_fails: StoreError | None = None

    async def store_waiting(self) -> None:
        """Count the call."""
        self.stores += 1
        if self.store_fails is not None:
            raise self.store_fails

    async def refresh(self) -> None:
        """Count the call."""
        self.reads += 1
        await self.answers.wait()

    async def load(self, voice: object) -> None:
        """Keep the voice."""
        self.loaded.append(voice)


class Life:
    """A house with a room that runs: `task` is the gateway's, `hosting` the room's process."""

    def __init__(self, house: House, ends: Ends, room: RemoteRoom) -> None:
        self.house = house
        self.ends = ends
        self.room = room
        self.stop = asyncio.Event()
        self.hosting = asyncio.create_task(house.host.run(self.stop))
        self.task = asyncio.create_task(room.run())

    @property
    def distant(self) -> DistantRoom:
        """Return the room in its process."""
        return self.house.rooms[0]


@asynccontextmanager
async def living(
    listen: ListenRequest | None = None, machine: str = THIS_MACHINE, *, in_use: SessionId | None = None
) -> AsyncIterator[Life]:
    """Run a room over a real link until the test ends it. `in_use`: the session of another room."""
    houses: list[House] = []
    async with AsyncExitStack() as stack:
        ends = await stack.enter_async_context(linked(room=lambda end: houses.append(House(end))))
        houses[0].machine = machine
        if in_use is not None:
            houses[0].in_use.add(in_use)
        life = Life(houses[0], ends, houses[0].room(ends.gateway, listen))
        await until(lambda: life.room.opened.is_set() or life.task.done())
        yield life
        for task in (life.task, life.hosting):
            task.cancel()
        await asyncio.gather(life.task, life.hosting, return_exceptions=True)


async def pass_time(life: Life, seconds: float) -> None:
    """Let the time pass in small steps, as a process that listens for a pause needs."""
    for _ in range(round(seconds * 8)):
        for _ in range(10):
            await asyncio.sleep(0)
        life.house.clock.advance(1 / 8)


async def take_back(life: Life, *present: Person) -> None:
    """Let the next gateway process take the room back. `present`: who is in the channel now."""
    await life.ends.drop()
    life.room = life.house.room(life.ends.gateway, place=FakePlace(people=list(present)), again=True)
    life.task = asyncio.create_task(life.room.run())
    await until(lambda: life.room.opened.is_set() or life.task.done())
