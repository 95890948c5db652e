"""A room that ran on without its gateway process is taken back by the next one."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import asynccontextmanager
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from bot.channel.port import MembershipChange, Person
from bot.guild import GuildChoice, Silence
from bot.health import Health
from bot.participation.costs import Cost
from bot.remote.link.handlers import Handlers
from bot.remote.link.hello import RoomIdentity
from bot.remote.room_side.room_host import (
    NOT_WANTED,
    UNUSED_AWAY_S,
    RoomHost,
)
from bot.room.endings import ProcessLostError
from bot.room.restarts import DATABASE_PAUSE_S
from bot.server_settings import DEFAULTS, ListenOnly
from compaction.errors import StoreError
from tests.bot.remote.peers import until
from tests.bot.remote.remote_room_scene import (
    ADA,
    BO,
    SESSION,
    STATUS,
    FakeSeat,
    House,
    Life,
    living,
    take_back,
)
from tests.fakes.clock import FakeClock

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable


@asynccontextmanager
async def away() -> AsyncIterator[Life]:
    """Run a room in which Bo has agreed to be heard. Its gateway process is gone; the next one has not come yet."""
    async with living() as life:
        await life.house.participation.set_agreed(10, BO, agrees=True)
        life.task.cancel()
        await asyncio.gather(life.task, return_exceptions=True)
        life.house.started_again()
        yield life


@pytest.mark.asyncio
async def test_a_room_that_ran_on_is_the_same_for_the_next_gateway_process() -> None:
    """It is one room with one session, and what commands change reaches it. What only the room knew is known again: who
    agreed, and the costs of the last hour.
    """
    async with away() as life:
        house, distant = life.house, life.distant
        assert distant.guild is not None
        distant.guild.costs.add(Cost(1, 20, 3.5), now=house.clock.monotonic())
        distant.guild.tell("words", frozenset({ADA, BO}))
        await take_back(life)
        assert len(house.rooms) == 1
        assert house.in_use == {SESSION}
        guild = await house.participation.of_guild(10)
        silenceable = guild.room
        assert silenceable is not None
        assert (silenceable.session_id, guild.consent.agreed, guild.consent.session_id) == (
            SESSION,
            frozenset({BO}),
            SESSION,
        )
        assert guild.costs.total == Cost(1, 20, 3.5)
        assert guild.consent.told_by("words") == {ADA, BO}
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
        assert distant.guild.consent.agreed == frozenset({BO})


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
            monkeypatch.setattr("bot.remote.gateway_side.remote_room.CONFIRM_WITHIN_S", 0.0)
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
        away_since=clock.monotonic(),
        room=RoomIdentity(0, 0, machine=machine),
        refused=never_refused,
        handlers=Handlers(),
    )
    absent = cast("Any", None)
    host = RoomHost(
        cast("Any", link),
        absent,
        absent,
        participation=absent,
        place=absent,
        new_room=absent,
        voices=absent,
        health=Health(clock),
        clock=clock,
    )
    clock.advance(UNUSED_AWAY_S)
    hosting = asyncio.create_task(host.run(stop))
    for _ in range(20):
        await asyncio.sleep(0)
    assert hosting.done() is not waits
    stop.set()
    assert await hosting == NOT_WANTED
