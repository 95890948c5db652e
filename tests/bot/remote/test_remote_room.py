"""A room in another process, seen from the gateway process: it runs, is told what people change, and can be lost."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast
from weakref import WeakSet

import pytest
from structlog.testing import capture_logs

from bot import events
from bot.channel.port import ListenRequest, MembershipChange, Person, UnfinishedWords
from bot.errors import SetupError
from bot.guild import GuildChoice, Silence
from bot.health import FaultKind, Health, HealthFault
from bot.models.voices import DEFAULT_VOICE
from bot.monitoring.metrics import Metrics
from bot.participation.costs import Cost
from bot.participation.guild_participation import GuildParticipations
from bot.participation.settings import ParticipationSettings
from bot.remote.adoption import AdoptedRoom
from bot.remote.gateway_link import GatewayLink
from bot.remote.gateway_parts import GatewayParts
from bot.remote.handover_pause import PATIENCE_S, PAUSE_S, WITHIN_S
from bot.remote.hello import RoomIdentity
from bot.remote.placement import THIS_MACHINE
from bot.remote.remote_room import GONE, RemoteRoom
from bot.remote.room_figures import ProcessFigures
from bot.remote.room_host import (
    GRACE_S,
    NOT_WANTED,
    UNUSED_AWAY_S,
    RoomHost,
    ToldStores,
)
from bot.remote.room_log import RoomLog
from bot.remote.room_publisher import RoomPublisher
from bot.remote.told_guild import ToldChoices, ToldOptOuts, ToldServerSettings
from bot.remote.wire_error import OtherProcessError
from bot.room.endings import HandedOverError, ProcessLostError
from bot.room.restarts import DATABASE_PAUSE_S
from bot.server_settings import DEFAULTS, ListenOnly, ServerSettingsBook, no_server_settings
from bot.texts.text import Text, in_language
from compaction.errors import StaleOwnerError, StoreError
from compaction.model import Mode, Seq, SessionId, Turn, TurnKind, TurnPart
from tests.bot.monitoring.test_metrics import samples, value
from tests.bot.remote.peers import ROOM, TOKEN, linked, until
from tests.fakes.choices import FakeGuildChoices, FakeOptOuts
from tests.fakes.clock import FakeClock
from tests.fakes.place import FakePlace

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from bot.dashboard.shown_memory import ShownMemory
    from bot.models.voices import EmbeddedVoice
    from bot.participation.guild_participation import GuildParticipation
    from bot.remote.link import MessageLink
    from bot.remote.room_messages import OpenRoom
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
        """Count the call."""
        self.calls[f"forgetting {person_id}"] += 1

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
        return GONE

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
        told = ToldChoices(ends_room), ToldOptOuts(), ToldServerSettings(ends_room)
        self.distant_servers = ServerSettingsBook(told[2])
        self.upkeep = SimpleUpkeep()
        people = cast("Any", SimpleNamespace(reload=self.upkeep.refresh))
        stores = ToldStores(*told, self.distant_servers, people, WeakSet([cast("Any", self.upkeep)]))
        # What the room's process measures itself.
        self.measured = Metrics(Health(self.clock))
        figures = partial(ProcessFigures(self.measured.own_series, self.clock).tell, ends_room)
        self.log = RoomLog(ends_room, self.clock, is_same_log=lambda _: False)
        health = Health(self.clock)
        self.publisher = RoomPublisher(ends_room, health, reports=(self.log.tell, figures))
        self.host = RoomHost(ends_room, stores, self.publisher, health=health, clock=self.clock)
        self.distant = GuildParticipations(
            told[0], told[1], ParticipationSettings(), wake_names=NAMES, clock=self.clock, asks=self.host.asks
        )
        self.distant_choices = told[0]
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
        self.host.prepare(self.distant, self, self._new_room, voices)
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
            yield seat

        async def speakers_of(_: SessionId) -> frozenset[str]:
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
async def living(listen: ListenRequest | None = None, machine: str = THIS_MACHINE) -> AsyncIterator[Life]:
    """Run a room over a real link until the test ends it."""
    houses: list[House] = []
    async with AsyncExitStack() as stack:
        ends = await stack.enter_async_context(linked(room=lambda end: houses.append(House(end))))
        houses[0].machine = machine
        life = Life(houses[0], ends, houses[0].room(ends.gateway, listen))
        await until(lambda: life.room.opened.is_set() or life.task.done())
        yield life
        for task in (life.task, life.hosting):
            task.cancel()
        await asyncio.gather(life.task, life.hosting, return_exceptions=True)


@pytest.mark.asyncio
async def test_a_room_runs_in_its_process_until_it_is_closed() -> None:
    """It is opened with what holds now, shows its events, state and memory, and ends with the reason."""
    async with living(ListenRequest("file", 601)) as life:
        house = life.house
        told = life.distant.told
        assert (told.guild_id, told.channel_id, told.listen is not None) == (10, 20, True)
        assert told.claims_after == 70
        assert in_language(life.room.status(), "de") == "Ich bin schon in Bar. Benutze zuerst /geh."
        assert life.house.seat is not None
        life.house.seat.machine = "north"
        assert str(life.room.status()).endswith("This room runs on the machine north.")
        assert life.room.faults() == [
            HealthFault(FaultKind.ROOM_MUTE, "Nobody hears me."),
            *Health(house.clock).faults(),
        ]
        assert house.in_use == {SESSION}
        guild = await house.participation.of_guild(10)
        silenceable = guild.room
        assert silenceable is not None
        assert (silenceable.session_id, guild.listens_only) == (SESSION, True)
        life.distant.observe(events.TurnRecorded(TURN, 2.0))
        await until(lambda: len(house.seen) == 2)
        assert house.seen[1] == events.TurnRecorded(TURN, 2.0)
        ((session_id, memory),) = house.shown
        assert (session_id, memory.total_turns, memory.cursor, len(memory.window)) == (SESSION, 5, 2, 1)
        assert memory.window[0].seq == 4
        assert memory.summary is not None
        assert memory.summary.text == "Ada hid a key."
        assert memory.allowed_part(TURN) == TURN
        life.room.close("left")
        assert await life.task == "left"
        assert await life.hosting == "left"
        assert (house.in_use, guild.room) == (set(), None)


@pytest.mark.asyncio
async def test_what_somebody_is_saying_is_known_to_the_first_process() -> None:
    """/status shows it there, too, and nothing of somebody who has opted out."""
    async with living() as life:
        life.distant.observe(events.InterimTranscribed(ADA, "the key is", 2.0))
        await until(lambda: bool(life.room.unfinished()))
        assert life.room.unfinished() == (UnfinishedWords("Ada", "the key is"),)
        await life.house.participation.set_opt_out(10, ADA, out=True)
        assert life.room.unfinished() == ()


@pytest.mark.asyncio
async def test_an_opt_out_is_in_effect_in_the_room_before_it_is_confirmed() -> None:
    """By then the person is not heard there, what was made of their words is dropped, and the dashboard hides it."""
    async with living() as life:
        house = life.house
        await house.participation.set_opt_out(10, ADA, out=True)
        assert life.distant.guild is not None
        assert life.distant.guild.excludes(ADA)
        assert life.distant.calls == {f"out {ADA} True": 1}
        assert house.opt_outs.out == {10: frozenset({ADA})}
        life.distant.observe(events.TurnRecorded(replace(TURN, parts=(TurnPart(str(BO), "Bo", "Yes."),)), 2.0))
        await until(lambda: len(house.seen) == 2)
        memory = house.shown[0][1]
        assert memory.allowed_part(TURN).parts == ()


@pytest.mark.parametrize(("may_go_on", "fenced"), [(False, []), (True, [10])])
@pytest.mark.asyncio
async def test_a_room_that_does_not_confirm_is_ended_first(
    monkeypatch: pytest.MonkeyPatch, fenced: list[int], *, may_go_on: bool
) -> None:
    """Nobody may be heard in it against their wish; the command succeeds because the process is gone. One with other
    rooms, or of another machine, may live on, so the room is fenced off before the command is answered.
    """
    monkeypatch.setattr(FakeSeat, "may_go_on", may_go_on)
    monkeypatch.setattr("bot.remote.remote_participation.CONFIRM_WITHIN_S", 0.0)
    async with living() as life:
        await life.house.participation.set_opt_out(10, ADA, out=True)
        assert life.house.fenced == fenced
        with pytest.raises(ProcessLostError):
            await life.task
        assert life.house.seat is not None
        assert not life.house.seat.is_open


@pytest.mark.asyncio
async def test_what_people_change_reaches_the_room() -> None:
    """Silence, forgetting, the server's choices and settings, and who comes and goes."""
    async with living() as life:
        house, distant = life.house, life.distant
        await house.participation.silence_for_now(10, by=ADA)
        assert distant.guild is not None
        assert distant.guild.silence == Silence(session_id=SESSION)
        await house.participation.on_forgetting(ADA)
        await house.participation.on_forgotten([SESSION])
        assert distant.calls == {"stop": 1, f"forgetting {ADA}": 1, "forgotten": 1}
        (refreshing,) = house.upkeeps
        await refreshing.refresh()
        assert house.upkeep.reads == 2
        await house.choices.choose(10, lambda _: GuildChoice(persona="Speak like a pirate."), by=ADA)
        await house.servers.change(10, lambda _: replace(DEFAULTS, language="de"), by=ADA)
        life.room.on_membership(MembershipChange(Person(BO, "Bo", is_bot=False), joined=True))
        await until(lambda: distant.moves and house.distant_servers.of(10) != DEFAULTS)
        assert distant.moves == [MembershipChange(Person(BO, "Bo", is_bot=False), joined=True)]
        assert house.distant_choices.told.persona == "Speak like a pirate."
        assert house.distant_servers.of(10).language == "de"
        assert str(await life.room.play_sample(DEFAULT_VOICE)) == f"I could not speak in {DEFAULT_VOICE.name} now."
        assert house.upkeep.loaded == [DEFAULT_VOICE]


@pytest.mark.asyncio
async def test_a_room_stores_what_waits_before_somebody_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """If its store refuses that, or it does not answer, the person is told to try again, and the room goes on."""
    async with living() as life:
        (room,) = life.house.upkeeps
        await room.store_waiting()
        assert life.house.upkeep.stores == 1
        life.house.upkeep.store_fails = StoreError("The disk is full.")
        with pytest.raises(StoreError, match="disk is full"):
            await room.store_waiting()
        monkeypatch.setattr("bot.remote.remote_participation.STORE_WITHIN_S", 0.0)
        with pytest.raises(StoreError, match="did not answer"):
            await room.store_waiting()
        assert life.house.seat is not None
        assert life.house.seat.is_open
        life.room.close("left")
        await life.task
        await room.store_waiting()


@pytest.mark.asyncio
async def test_what_the_room_changes_reaches_everybody_else() -> None:
    """A silence that was asked for aloud is stored once, here; costs count in the server's hour."""
    async with living() as life:
        house, distant = life.house, life.distant
        assert distant.guild is not None
        distant.guild.silence = Silence(session_id=SESSION)
        await house.distant.store_silence(distant.guild, by=ADA)
        guild = await house.participation.of_guild(10)
        assert guild.silence == Silence(session_id=SESSION)
        assert house.choices.stored[10].silence == Silence(session_id=SESSION)
        distant.guild.costs.add(Cost(1, 20, 3.5), now=house.clock.monotonic())
        await until(lambda: guild.costs.total == Cost(1, 20, 3.5))
        listens = ListenOnly(SESSION, "file", 601)
        await house.distant_servers.change(10, lambda _: replace(DEFAULTS, listen_only=listens), by=None)
        assert house.servers.of(10).listen_only == listens


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("error", "raised", "words", "reason"),
    [
        (StoreError("The disk is full. Make room."), StoreError, "Make room", "crashed"),
        (ExceptionGroup("tasks", [StaleOwnerError("Others run it.")]), StaleOwnerError, "Others", "taken_over"),
        (ValueError("secret words"), OtherProcessError, "ValueError", "crashed"),
    ],
)
async def test_a_crash_is_raised_as_in_one_process(
    error: Exception, raised: type[Exception], words: str, reason: str
) -> None:
    """Our errors keep their class and their sentence; of others only the class crosses."""
    async with living() as life:
        life.distant.end.set_exception(error)
        with pytest.raises(raised, match=words):
            await life.task
        assert await life.hosting == reason


@pytest.mark.asyncio
async def test_a_process_that_waits_is_kept_when_the_database_does_not_answer_it() -> None:
    """The room has not begun there. When the database is back, the same process runs it, or that of another server."""
    houses: list[House] = []
    async with linked(room=lambda end: houses.append(House(end))) as ends:
        (house,) = houses
        house.claim_fails = StoreError("The database is away.")
        hosting = asyncio.create_task(house.host.run(asyncio.Event()))
        for attempt in range(3):
            await until(lambda attempt=attempt: len(ends.links) == attempt + 1 and ends.room.is_open)  # type: ignore[misc]
            with pytest.raises(StoreError, match="The database is away"):
                await house.room(ends.gateway).run()
            assert house.seat is not None
            assert (house.seat.is_handed_back, house.seat.died.is_set(), house.fenced) == (True, False, [])
        house.claim_fails = None
        await until(lambda: len(ends.links) == 4 and ends.room.is_open)
        room = house.room(ends.gateway)
        running = asyncio.create_task(room.run())
        await until(room.opened.is_set)
        room.close("left")
        assert (await running, await hosting) == ("left", "left")


@pytest.mark.parametrize("asks", [True, False])
@pytest.mark.asyncio
async def test_whom_a_server_asks_is_settled_when_a_room_begins(*, asks: bool) -> None:
    """The bot has run for long and knows the server. Its managers change consent while a process is loaded, which is
    in effect in the room that begins then, and change it back while the room runs, which waits for the next one.
    """
    houses: list[House] = []
    async with linked(room=lambda end: houses.append(House(end))) as ends:
        (house,) = houses
        await house.servers.change(10, lambda _: replace(DEFAULTS, asks=not asks), by=ADA)
        guild = await house.participation.of_guild(10)
        assert guild.excludes(ADA) is not asks
        hosting = asyncio.create_task(house.host.run(asyncio.Event()))
        house.loads.clear()
        room = house.room(ends.gateway)
        running = asyncio.create_task(room.run())
        await asyncio.sleep(0)
        await house.servers.change(10, lambda _: replace(DEFAULTS, asks=asks), by=ADA)
        house.loads.set()
        await until(room.opened.is_set)
        distant = house.rooms[0].guild
        assert distant is not None
        assert (guild.excludes(ADA), distant.excludes(ADA)) == (asks, asks)
        await house.servers.change(10, lambda _: replace(DEFAULTS, asks=not asks), by=ADA)
        await until(lambda: house.distant_servers.of(10).asks is not asks)
        assert (guild.excludes(ADA), distant.excludes(ADA)) == (asks, asks)
        room.close("left")
        assert (await running, await hosting) == ("left", "left")


@pytest.mark.asyncio
async def test_a_room_that_runs_on_keeps_how_it_began() -> None:
    """Its link is lost after a change of consent, and the same gateway process takes it back: nobody is asked in it."""
    async with living() as life:
        house = life.house
        await house.servers.change(10, lambda _: replace(DEFAULTS, asks=True), by=ADA)
        life.task.cancel()
        await asyncio.gather(life.task, return_exceptions=True)
        await take_back(life)
        assert (house.in_use, house.fenced, life.task.done()) == ({SESSION}, [], False)
        assert life.distant.guild is not None
        guild = await house.participation.of_guild(10)
        assert (guild.excludes(ADA), life.distant.guild.excludes(ADA)) == (False, False)


@pytest.mark.asyncio
async def test_a_room_that_is_closed_while_its_process_loads_ends_at_once() -> None:
    """Also one that was closed before it began to wait."""
    house = House(GatewayLink("ws://127.0.0.1:9/room", TOKEN, ROOM))
    house.loads.clear()
    room = house.room(cast("Any", None))
    running = asyncio.create_task(room.run())
    await asyncio.sleep(0)
    room.close("left")
    room.close("stopped")
    assert await running == "left"
    early = house.room(cast("Any", None))
    early.close("left")
    assert await early.run() == "left"


@pytest.mark.asyncio
async def test_a_process_that_cannot_be_loaded_without_the_database_is_no_crash() -> None:
    """The room waits for the database then. If that answers, the process itself is at fault."""
    house = House(GatewayLink("ws://127.0.0.1:9/room", TOKEN, ROOM))
    house.load_fails, house.database_fails = SetupError("It did not start."), StoreError("The database is away.")
    with pytest.raises(StoreError, match="is away"):
        await house.room(cast("Any", None)).run()
    house.database_fails = None
    with pytest.raises(SetupError, match="did not start"):
        await house.room(cast("Any", None)).run()


@pytest.mark.asyncio
async def test_a_room_that_was_claimed_before_it_could_begin_is_started_again() -> None:
    """A process that was given up before has claimed it late. It ends, so the room would be nowhere."""
    async with living() as life:
        life.room._session_id = None
        life.distant.end.set_exception(StaleOwnerError("Others run it."))
        with pytest.raises(ProcessLostError):
            await life.task


@pytest.mark.asyncio
async def test_a_sample_that_cannot_be_played_is_told_in_a_sentence() -> None:
    """The room's process has just lost its link, or failed."""
    async with living() as life:
        life.ends.gateway.close()
        assert "not there" in str(await life.room.play_sample(DEFAULT_VOICE))


@pytest.mark.asyncio
async def test_what_the_process_measures_is_in_the_metrics_until_its_last_second() -> None:
    """What is measured after the figures were told last is told when the room ends."""
    async with living() as life:
        house = life.house
        house.measured.on_store("append_turn", 0.5, failed=True)
        life.room.close("left")
        assert await life.task == "left"
        assert value(house.metrics, "store_failures_total", operation="append_turn", machine="here") == 1
        assert value(house.metrics, "store_seconds_sum", operation="append_turn", machine="here") == 0.5
        of_process = frozenset({("machine", "here"), ("process", "1")})
        assert samples(house.metrics)["process_resident_memory_bytes", of_process] > 0


@pytest.mark.asyncio
@pytest.mark.parametrize(("machine", "logged"), [("north", ["north"]), (THIS_MACHINE, [])])
async def test_a_room_of_another_machine_is_shown_and_logged_with_it(machine: str, logged: list[str]) -> None:
    """A room's process on this machine writes to the log itself."""
    with capture_logs() as lines:
        async with living(machine=machine) as life:
            assert life.house.shown_on == [machine]
            life.house.log.add(json.dumps({"level": "info", "event": "turn_recorded"}))
            life.room.close("left")
            await life.task
    assert [line["machine"] for line in lines if line["event"] == "turn_recorded"] == logged


@pytest.mark.asyncio
async def test_a_process_that_is_gone_is_a_loss() -> None:
    """The supervisor starts such a room again at once."""
    async with living() as life:
        assert life.house.seat is not None
        await life.house.seat.give_up()
        with pytest.raises(ProcessLostError, match="has ended"):
            await life.task
        assert life.house.in_use == set()


async def pass_time(life: Life, seconds: float) -> None:
    """Let the time pass in small steps, as a process that listens for a pause needs."""
    for _ in range(round(seconds * 8)):
        for _ in range(10):
            await asyncio.sleep(0)
        life.house.clock.advance(1 / 8)


@pytest.mark.asyncio
async def test_a_process_that_has_to_end_hands_its_room_over() -> None:
    """After a moment: whoever ends both processes at once lets the gateway process say why."""
    async with living() as life:
        life.stop.set()
        await until(lambda: life.house.clock.sleeping >= 2)
        await pass_time(life, GRACE_S + PAUSE_S)
        with pytest.raises(HandedOverError, match="had to end"):
            await life.task
        assert life.house.stays == [True]


@pytest.mark.asyncio
async def test_a_room_is_handed_over_in_a_pause_in_speech() -> None:
    """It stays while somebody speaks or the bot answers, and through a gap between two words."""
    async with living() as life:
        [room] = life.house.rooms
        room.busy = True
        life.stop.set()
        await pass_time(life, 10.0)
        room.busy = False
        await pass_time(life, PAUSE_S / 2)
        room.busy = True
        await pass_time(life, PAUSE_S)
        room.busy = False
        await pass_time(life, PAUSE_S / 2)
        assert not room.end.done()
        await pass_time(life, PAUSE_S)
        with pytest.raises(HandedOverError, match="had to end"):
            await life.task


@pytest.mark.asyncio
async def test_where_people_hardly_pause_a_room_is_handed_over_at_the_end_of_a_sentence() -> None:
    """It is not known yet whether the speaker has finished; an answer is waited for."""
    async with living() as life:
        [room] = life.house.rooms
        room.busy = room.answering = True
        life.house.quiet = PAUSE_S
        life.stop.set()
        await pass_time(life, GRACE_S + PATIENCE_S + 1)
        assert not room.end.done()
        room.answering = False
        await pass_time(life, 0.5)
        with pytest.raises(HandedOverError, match="had to end"):
            await life.task


@pytest.mark.asyncio
async def test_a_room_where_people_never_pause_is_handed_over_all_the_same() -> None:
    """Whoever ends a machine does not wait for the end of an evening."""
    async with living() as life:
        [room] = life.house.rooms
        room.busy = True
        life.stop.set()
        await pass_time(life, GRACE_S + WITHIN_S - 1)
        assert not room.end.done()
        await pass_time(life, 1.5)
        with pytest.raises(HandedOverError, match="had to end"):
            await life.task


@pytest.mark.asyncio
async def test_a_room_that_has_to_end_leaves_the_channel() -> None:
    """Both processes were told to end, and the gateway process says why: there is no next process."""
    async with living() as life:
        life.stop.set()
        await until(lambda: life.house.clock.sleeping >= 2)
        life.room.close("left")
        assert await life.task == "left"
        life.house.clock.advance(2.0)
        await life.hosting
        assert life.house.stays == []


@pytest.mark.asyncio
async def test_a_process_without_a_room_ends_when_it_is_told() -> None:
    """It has nothing to hand over."""
    houses: list[House] = []
    async with linked(room=lambda end: houses.append(House(end))):
        stop = asyncio.Event()
        stop.set()
        assert await houses[0].host.run(stop) == NOT_WANTED


@pytest.mark.asyncio
async def test_a_process_with_a_room_does_not_offer_itself_any_more() -> None:
    """It introduces itself as its room, so a gateway process that has given it up knows it."""
    async with living() as life:
        room = life.ends.room.room
        assert (room.guild_id, room.channel_id, room.run_id) == (10, 20, "one")
        assert (room.opened_by, room.listen) == ("mark", None)


@asynccontextmanager
async def away() -> AsyncIterator[Life]:
    """Run a room in which Bo has agreed to be heard. Its gateway process is gone; the next one has not come yet."""
    async with living() as life:
        await life.house.participation.set_agreed(10, BO, agrees=True)
        life.task.cancel()
        await asyncio.gather(life.task, return_exceptions=True)
        life.house.started_again()
        yield life


async def take_back(life: Life, *present: Person) -> None:
    """Let the next gateway process take the room back. `present`: who is in the channel now."""
    await life.ends.drop()
    life.room = life.house.room(life.ends.gateway, place=FakePlace(people=list(present)), again=True)
    life.task = asyncio.create_task(life.room.run())
    await until(lambda: life.room.opened.is_set() or life.task.done())


@pytest.mark.asyncio
async def test_a_room_that_ran_on_is_the_same_for_the_next_gateway_process() -> None:
    """It is one room with one session, and what commands change reaches it. What only the room knew is known again: who
    agreed, and the costs of the last hour.
    """
    async with away() as life:
        house, distant = life.house, life.distant
        assert distant.guild is not None
        distant.guild.costs.add(Cost(1, 20, 3.5), now=house.clock.monotonic())
        await take_back(life)
        assert len(house.rooms) == 1
        assert house.in_use == {SESSION}
        guild = await house.participation.of_guild(10)
        silenceable = guild.room
        assert silenceable is not None
        assert (silenceable.session_id, guild.agreed, guild.consented_in) == (SESSION, frozenset({BO}), SESSION)
        assert guild.costs.total == Cost(1, 20, 3.5)
        assert house.shown[0][1].total_turns == 5
        await house.participation.set_opt_out(10, ADA, out=True)
        assert distant.guild.excludes(ADA)
        life.room.close("left")
        assert await life.task == "left"
        assert await life.hosting == "left"


@pytest.mark.asyncio
async def test_what_was_changed_meanwhile_is_in_effect_before_the_room_is_known_again() -> None:
    """Somebody opted out, the persona and the settings were changed, words were deleted, people came and went."""
    ada, bo = Person(ADA, "Ada", is_bot=False), Person(BO, "Bo", is_bot=False)
    async with away() as life:
        house, distant = life.house, life.distant
        house.members_before = (ada,)
        await house.opt_outs.put(10, ADA, out=True)
        await house.choices.choose(
            10, lambda _: GuildChoice(persona="Speak like a pirate.", silence=Silence(always=True)), by=ADA
        )
        await house.servers.change(10, lambda _: replace(DEFAULTS, language="de"), by=ADA)
        await take_back(life, bo)
        assert distant.guild is not None
        assert distant.calls == {f"out {ADA} True": 1}
        assert distant.guild.silence == Silence(always=True)
        assert house.distant_choices.told.persona == "Speak like a pirate."
        assert house.distant_servers.of(10).language == "de"
        assert house.upkeep.reads == 2
        await until(lambda: len(distant.moves) == 2)
        assert distant.moves == [MembershipChange(ada, joined=False), MembershipChange(bo, joined=True)]


class Outage:
    """The database of a house: away after one answer to the gateway process, then for the room's process, until it is
    `over`.
    """

    def __init__(self, house: House) -> None:
        self._clock = house.clock
        people = cast("Any", house.host)._stores.people
        self._read, self._reload = house.choices.choice, people.reload
        self.tries: Counter[str] = Counter()
        self.over: set[str] = set()
        house.choices.choice = self._choice  # type: ignore[method-assign]
        people.reload = self._again

    def _check(self, whose: str) -> None:
        self.tries[whose] += 1
        if whose not in self.over:
            raise StoreError("The database is away.")

    async def _choice(self, guild_id: int) -> GuildChoice:
        if self.tries["gateway"]:
            self._check("gateway")
        self.tries["gateway"] += 1
        return await self._read(guild_id)

    async def _again(self) -> None:
        self._check("room")
        await self._reload()

    async def until(self, holds: Callable[[], object]) -> None:
        """Let the time pass until something holds."""

        def passes() -> object:
            self._clock.advance(DATABASE_PAUSE_S)
            return holds()

        await until(passes)


async def outage_at_take_back(life: Life) -> Outage:
    """Start the gateway process again while the database goes away; return once the room waits for it."""
    outage = Outage(life.house)
    await take_back(life)
    await until(lambda: outage.tries["gateway"] == 2)
    return outage


@pytest.mark.asyncio
async def test_a_room_runs_on_while_it_cannot_be_taken_back_without_the_database() -> None:
    """It is neither lost nor made stale. Whoever opted out is not heard, a silence is kept, and commands reach it."""
    async with away() as life:
        house, distant = life.house, life.distant
        assert distant.guild is not None
        await house.choices.choose(10, lambda _: GuildChoice(silence=Silence(always=True)), by=ADA)
        await house.opt_outs.put(10, ADA, out=True)
        outage = await outage_at_take_back(life)
        assert life.room.opened.is_set(), "the start of the bot is not held up"
        assert str(life.room.status()) == str(STATUS)
        assert distant.guild.excludes(ADA)
        assert distant.guild.silence == Silence(always=True)
        await house.participation.set_opt_out(10, BO, out=True)
        assert distant.guild.excludes(BO)
        life.room.on_membership(MembershipChange(Person(BO, "Bo", is_bot=False), joined=True))
        await until(lambda: distant.moves)
        await outage.until(lambda: outage.tries["gateway"] == 5)
        outage.over.add("gateway")
        await outage.until(lambda: outage.tries["room"] == 3)
        assert (house.in_use, house.fenced, life.task.done()) == (set(), [], False)
        outage.over.add("room")
        await outage.until(lambda: house.in_use == {SESSION})
        assert len(house.rooms) == 1
        assert house.shown[0][1].total_turns == 5
        life.room.close("left")
        assert (await life.task, await life.hosting) == ("left", "left")


@pytest.mark.parametrize("is_lost", [True, False])
@pytest.mark.asyncio
async def test_a_room_that_waits_for_the_database_to_be_taken_back_may_end(*, is_lost: bool) -> None:
    """Its process is lost, or somebody sends the bot away."""
    async with away() as life:
        outage = await outage_at_take_back(life)
        assert life.house.seat is not None
        if is_lost:
            life.house.seat.died.set()
        else:
            life.room.close("left")
        await outage.until(life.task.done)
        if is_lost:
            with pytest.raises(ProcessLostError):
                await life.task
        else:
            assert await life.task == "left"
        assert life.house.in_use == set()


@pytest.mark.asyncio
async def test_an_opt_out_while_a_room_is_taken_back_is_in_effect_before_it_is_confirmed() -> None:
    """The room hears people all the while. What is told it of before does not undo the opt-out."""
    async with away() as life:
        house, distant = life.house, life.distant
        assert distant.guild is not None
        house.upkeep.answers.clear()
        taking = asyncio.create_task(take_back(life))
        await until(lambda: house.upkeep.reads)
        await house.participation.set_opt_out(10, ADA, out=True)
        assert distant.guild.excludes(ADA)
        assert distant.calls == {f"out {ADA} True": 1}
        house.upkeep.answers.set()
        await taking
        guild = await house.participation.of_guild(10)
        assert guild.room is not None
        await guild.room.confirm()
        assert distant.guild.excludes(ADA)
        assert distant.guild.agreed == frozenset({BO})


@pytest.mark.asyncio
async def test_an_opt_out_before_a_room_has_taken_over_what_was_changed_holds() -> None:
    """The choices of the server are being read at that moment."""
    async with away() as life:
        house, distant = life.house, life.distant
        assert distant.guild is not None
        reading, read = asyncio.Event(), asyncio.Event()
        choice = house.choices.choice

        async def slowly(guild_id: int) -> GuildChoice:
            reading.set()
            await read.wait()
            return await choice(guild_id)

        await house.participation.of_guild(10)
        house.choices.choice = slowly  # type: ignore[method-assign]
        taking = asyncio.create_task(take_back(life))
        await reading.wait()
        await house.participation.set_opt_out(10, ADA, out=True)
        assert distant.guild.excludes(ADA)
        read.set()
        await taking
        assert distant.guild.excludes(ADA)


@pytest.mark.asyncio
async def test_who_comes_while_a_room_is_taken_back_comes_once() -> None:
    """Discord tells it, and the channel shows it."""
    bo = Person(BO, "Bo", is_bot=False)
    async with away() as life:
        life.house.upkeep.answers.clear()
        taking = asyncio.create_task(take_back(life, bo))
        await until(lambda: life.house.upkeep.reads)
        life.room.on_membership(MembershipChange(bo, joined=True))
        life.house.upkeep.answers.set()
        await taking
        guild = await life.house.participation.of_guild(10)
        assert guild.room is not None
        await guild.room.confirm()
        assert life.distant.moves == [MembershipChange(bo, joined=True)]


@pytest.mark.asyncio
async def test_a_silence_asked_aloud_and_a_command_at_the_same_moment_both_hold() -> None:
    """The command's word was on its way with the silence of before."""
    async with living() as life:
        house, distant = life.house, life.distant
        assert distant.guild is not None
        distant.guild.silence = Silence(session_id=SESSION)
        told = asyncio.create_task(house.participation.set_opt_out(10, ADA, out=True))
        stored = asyncio.create_task(house.distant.store_silence(distant.guild, by=BO))
        await asyncio.gather(told, stored)
        assert distant.guild.excludes(ADA)
        assert distant.guild.silence == Silence(session_id=SESSION)
        assert (await house.participation.of_guild(10)).silence == Silence(session_id=SESSION)


@pytest.mark.asyncio
async def test_what_a_room_stores_does_not_undo_what_a_manager_has_just_changed() -> None:
    """The room changes what it listens for alone; all else is the manager's, here and there."""
    async with living() as life:
        house = life.house
        listens = ListenOnly(SESSION, "file", 601)
        changed = house.servers.change(10, lambda _: replace(DEFAULTS, asks=True, language="de"), by=ADA)
        await asyncio.gather(
            changed, house.distant_servers.change(10, lambda now: replace(now, listen_only=listens), by=None)
        )
        both = replace(DEFAULTS, asks=True, language="de", listen_only=listens)
        assert house.servers.of(10) == both
        await until(lambda: house.distant_servers.of(10) == both)


@pytest.mark.asyncio
async def test_a_silence_that_nobody_could_store_is_stored_when_the_gateway_process_is_back() -> None:
    """Somebody asked for it aloud meanwhile; it stays in effect."""
    async with away() as life:
        house, distant = life.house, life.distant
        assert distant.guild is not None
        life.ends.gateway.close()
        distant.guild.silence = Silence(session_id=SESSION)
        with pytest.raises(StoreError):
            await house.distant.store_silence(distant.guild, by=ADA)
        await until(lambda: life.ends.room.is_open)
        await take_back(life)
        guild = await house.participation.of_guild(10)
        assert guild.silence == distant.guild.silence == Silence(session_id=SESSION)
        assert house.choices.stored[10].silence == Silence(session_id=SESSION)


@pytest.mark.parametrize("confirms", [True, False])
@pytest.mark.asyncio
async def test_a_room_that_cannot_go_on_is_made_stale(monkeypatch: pytest.MonkeyPatch, *, confirms: bool) -> None:
    """It does not confirm, or began without asking people, who have to be asked now. It is lost, and begins anew."""
    monkeypatch.setattr(FakeSeat, "may_go_on", True)
    async with away() as life:
        if confirms:
            await life.house.servers.change(10, lambda _: replace(DEFAULTS, asks=True), by=ADA)
        else:
            monkeypatch.setattr("bot.remote.remote_room.CONFIRM_WITHIN_S", 0.0)
        await take_back(life)
        with pytest.raises(ProcessLostError, match="did not take over"):
            await life.task
        assert life.house.fenced == [10]
        assert (await life.house.participation.of_guild(10)).room is None


@pytest.mark.parametrize(("machine", "waits"), [("", False), ("north", True)])
@pytest.mark.asyncio
async def test_a_process_of_another_machine_waits_for_the_next_gateway_process(machine: str, *, waits: bool) -> None:
    """One of the same machine belongs to the gateway process that started it."""
    clock, stop = FakeClock(), asyncio.Event()

    async def never_refused() -> None:
        await asyncio.Event().wait()

    link = SimpleNamespace(
        away_since=clock.monotonic(), room=RoomIdentity(0, 0, machine=machine), refused=never_refused
    )
    absent = cast("Any", None)
    host = RoomHost(cast("Any", link), absent, absent, health=Health(clock), clock=clock)
    clock.advance(UNUSED_AWAY_S)
    hosting = asyncio.create_task(host.run(stop))
    for _ in range(20):
        await asyncio.sleep(0)
    assert hosting.done() is not waits
    stop.set()
    assert await hosting == NOT_WANTED
