"""Processes of other machines: they offer themselves, the emptiest machine gets a room, and any of them can be lost."""

from __future__ import annotations

import asyncio
import sys
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import pytest

from bot.machine_load import MachineLoad
from bot.remote.link.address import LOOPBACK, RoomsAddress
from bot.remote.link.gateway_link import GatewayLink
from bot.remote.link.handlers import Handlers
from bot.remote.link.hello import RoomIdentity, RoomRefusedError
from bot.remote.link.listener import RemoteRoomListener
from bot.remote.link.message_link import MessageLink
from bot.remote.processes import room_processes
from bot.remote.processes.adoption import AdoptedRoom
from bot.remote.processes.placement import THIS_MACHINE
from bot.remote.processes.room_processes import DOUBT_S, RoomProcesses
from bot.remote.processes.seated_process import LOST
from bot.room.endings import ProcessLostError
from bot.room.restarts import LOST_AFTER_S
from tests.bot.remote.peers import TOKEN, until, waiting_machines
from tests.fakes.clock import FakeClock
from tests.patience import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from bot.remote.processes.room_seat import RoomSeat

SLEEPS = (sys.executable, "-c", "import time; time.sleep(600)")
CLUSTER_TOKEN = "the cluster's token, which nobody guesses"


class House:
    """A gateway process with both listeners. Its own processes do nothing; the test opens the links of all."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.started: list[str] = []
        self.processes = RoomProcesses(self._command, self.clock)
        self.here = RemoteRoomListener(self.processes.on_link, TOKEN)
        self.elsewhere = RemoteRoomListener(self.processes.on_offer, CLUSTER_TOKEN, at=RoomsAddress(LOOPBACK, 0))
        self.links = AsyncExitStack()

    def _command(self, run_id: str) -> tuple[str, ...]:
        self.started.append(run_id)
        return SLEEPS

    async def load(self, number: int) -> GatewayLink:
        """Let the process of this machine with that number be loaded."""
        await until(lambda: len(self.started) > number)
        link = GatewayLink(self.here.url, TOKEN, RoomIdentity(0, 0, run_id=self.started[number]))
        return await self.links.enter_async_context(link)

    async def offer(
        self, machine: str, run_id: str = "a", *, guild_id: int = 0, emergency: bool = False
    ) -> GatewayLink:
        """Let a process of another machine offer itself."""
        room = RoomIdentity(guild_id, 0, run_id=run_id, machine=machine, emergency=emergency)
        return await self.links.enter_async_context(GatewayLink(self.elsewhere.url, CLUSTER_TOKEN, room))


@asynccontextmanager
async def opened() -> AsyncIterator[House]:
    """Open a house, and end every process."""
    house = House()
    async with house.here, house.elsewhere, house.processes, house.links:
        yield house


async def shared(house: House, rooms: AsyncExitStack, *others: str) -> RoomSeat:
    """Begin room 1 in a process of `north` that keeps its emergency seat; then lose room 2, whose process was one of
    `others` in the south.
    """
    await house.offer("north", "a")
    await house.offer("north", "a", emergency=True)
    for run_id in others:
        await house.offer("south", run_id)
    seat = await rooms.enter_async_context(house.processes.taken(1))
    assert await lost(house, guild_id=2) == "south"
    return seat


def distant_rooms(house: House) -> int:
    """Return how many rooms run on other machines."""
    return sum(load.rooms for load in house.processes.machines() if load.machine != THIS_MACHINE)


async def lost(house: House, *, guild_id: int) -> str:
    """Begin a room, lose it, and return on which machine that was."""
    machine = ""
    with suppress(ProcessLostError):
        async with house.processes.taken(guild_id) as seat:
            machine = seat.machine
            await seat.give_up()
            raise ProcessLostError(LOST)
    return machine


async def lost_with_its_links(house: House, links: AsyncExitStack, *, guild_id: int) -> str:
    """Begin a room, lose all links of its process, and return on which machine that was."""
    machine = ""
    with suppress(ProcessLostError):
        async with house.processes.taken(guild_id) as seat:
            machine = seat.machine
            await links.aclose()
            raise ProcessLostError(await seat.lost())
    return machine


@pytest.mark.asyncio
async def test_rooms_go_to_the_machines_in_turn() -> None:
    """Each takes the process that waits longest on its machine; the gateway's own machine is used like the others."""
    async with opened() as house, AsyncExitStack() as rooms:
        await house.load(0)
        for machine, run_id in (("north", "a"), ("north", "b"), ("south", "c")):
            await house.offer(machine, run_id)
        taken = [await rooms.enter_async_context(house.processes.taken(guild_id)) for guild_id in range(4)]
        assert [(seat.machine, seat.run_id) for seat in taken] == [
            ("north", "a"),
            ("south", "c"),
            (THIS_MACHINE, house.started[0]),
            ("north", "b"),
        ]
        assert distant_rooms(house) == 3
        for seat in taken:
            await seat.give_up()
    assert distant_rooms(house) == 0


@pytest.mark.asyncio
async def test_a_process_that_is_loaded_elsewhere_comes_before_one_that_loads_here() -> None:
    """Nobody waits for seconds while another machine is ready."""
    async with opened() as house:
        await until(lambda: house.started)
        await house.offer("north")
        async with house.processes.taken(1) as seat:
            assert seat.machine == "north"
            await seat.give_up()


@pytest.mark.asyncio
async def test_a_room_that_has_lost_its_process_shares_another_one_until_one_is_loaded() -> None:
    """A room that begins waits for one that loads: people have not spoken yet."""
    async with opened() as house, AsyncExitStack() as rooms:
        first = await shared(house, rooms, "b")
        begins = asyncio.create_task(rooms.enter_async_context(house.processes.taken(3)))
        second = await rooms.enter_async_context(house.processes.taken(2))
        assert (second.run_id, second.link is first.link) == (first.run_id, False)
        assert distant_rooms(house) == 2
        await house.load(0)
        third = await begins
        assert third.machine == THIS_MACHINE
        for seat in (first, second, third):
            await seat.give_up()
    assert distant_rooms(house) == 0


@pytest.mark.asyncio
async def test_a_room_that_is_begun_long_after_it_lost_its_process_waits_for_one_of_its_own() -> None:
    """Nobody has spoken there meanwhile."""
    async with opened() as house, AsyncExitStack() as rooms:
        first = await shared(house, rooms, "b")
        house.clock.advance(LOST_AFTER_S)
        later = asyncio.create_task(rooms.enter_async_context(house.processes.taken(2)))
        await house.load(0)
        second = await later
        assert second.machine == THIS_MACHINE
        for seat in (first, second):
            await seat.give_up()


@pytest.mark.asyncio
async def test_a_room_that_loses_its_process_again_waits_for_one_of_its_own() -> None:
    """It may be what ended both, and the other room shall not be the third."""
    async with opened() as house, AsyncExitStack() as rooms:
        first = await shared(house, rooms, "b", "c")
        house.clock.advance(DOUBT_S)
        assert await lost(house, guild_id=2) == "south"
        again = asyncio.create_task(rooms.enter_async_context(house.processes.taken(2)))
        await house.load(0)
        second = await again
        assert second.machine == THIS_MACHINE
        for seat in (first, second):
            await seat.give_up()


@pytest.mark.asyncio
async def test_a_process_that_is_loaded_for_a_room_is_given_to_no_other_one() -> None:
    """The link has come, and the room that waits for it has not been told yet."""
    async with opened() as house, AsyncExitStack() as rooms:
        await until(lambda: house.processes._pool.spares)
        [spare] = house.processes._pool.spares
        first = asyncio.create_task(rooms.enter_async_context(house.processes.taken(1)))
        await until(lambda: not house.processes._pool.spares)
        others: list[object] = []
        on_loaded = spare.on_loaded

        def loaded() -> None:
            on_loaded()
            others.append(house.processes._chosen(2))

        spare.on_loaded = loaded  # type: ignore[method-assign]
        await house.load(0)
        await until(lambda: others)
        assert others == [None]
        await (await first).give_up()


@pytest.mark.asyncio
async def test_an_offer_that_is_gone_is_not_given_to_a_room() -> None:
    """The room gets a process of this machine instead."""
    async with opened() as house:
        await house.load(0)
        async with AsyncExitStack() as north:
            room = RoomIdentity(0, 0, run_id="a", machine="north")
            await north.enter_async_context(GatewayLink(house.elsewhere.url, CLUSTER_TOKEN, room))
            await until(lambda: waiting_machines(house.processes) == {"north", THIS_MACHINE})
        await until(lambda: waiting_machines(house.processes) == {THIS_MACHINE})
        async with house.processes.taken(1) as seat:
            assert seat.machine == THIS_MACHINE
            await seat.give_up()


@pytest.mark.asyncio
async def test_all_rooms_of_a_lost_machine_are_lost_and_go_to_the_others() -> None:
    """Their links end together. The next processes for them are those that wait elsewhere."""
    async with opened() as house, AsyncExitStack() as rooms, AsyncExitStack() as north:
        for run_id in ("a", "b"):
            room = RoomIdentity(0, 0, run_id=run_id, machine="north")
            await north.enter_async_context(GatewayLink(house.elsewhere.url, CLUSTER_TOKEN, room))
        taken = [await rooms.enter_async_context(house.processes.taken(guild_id)) for guild_id in range(2)]
        assert [seat.machine for seat in taken] == ["north", "north"]
        losing = [asyncio.create_task(seat.lost()) for seat in taken]
        await house.load(0)
        await house.offer("south", "c")
        await north.aclose()
        assert [await each for each in losing] == [LOST, LOST]
        assert [seat.is_open for seat in taken] == [False, False]
        again = [await rooms.enter_async_context(house.processes.taken(guild_id)) for guild_id in range(2)]
        assert [seat.machine for seat in again] == ["south", THIS_MACHINE]
        for seat in again:
            await seat.give_up()


@pytest.mark.asyncio
async def test_an_operator_sees_which_machine_is_gone() -> None:
    """With its last process; its rooms are counted where they go on."""
    async with opened() as house, AsyncExitStack() as rooms, AsyncExitStack() as north:
        await house.load(0)
        came_at = house.clock.now()
        for run_id in ("a", "b"):
            room = RoomIdentity(0, 0, run_id=run_id, machine="north")
            await north.enter_async_context(GatewayLink(house.elsewhere.url, CLUSTER_TOKEN, room))
        await until(lambda: waiting_machines(house.processes) == {"north", THIS_MACHINE})
        house.clock.advance(60)
        lost_room = asyncio.create_task(lost_with_its_links(house, north, guild_id=1))
        await until(lost_room.done)
        await until(lambda: not house.processes._distant)
        seat = await rooms.enter_async_context(house.processes.taken(1))
        assert house.processes.machines() == [
            MachineLoad(THIS_MACHINE, rooms=1, with_rooms=1),
            MachineLoad("north", gone_since=came_at + 60),
        ]
        await house.offer("north", "c")
        await until(lambda: waiting_machines(house.processes) == {"north"})
        assert house.processes.machines()[1] == MachineLoad("north", waiting=1, linked_since=came_at + 60)
        await seat.give_up()


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("waited_s", "machines"), [(0.0, ["south", THIS_MACHINE, "north"]), (DOUBT_S, ["north", "south", THIS_MACHINE])]
)
async def test_a_machine_that_has_lost_a_room_comes_last_for_a_moment(waited_s: float, machines: list[str]) -> None:
    """It may be gone with all its processes, also those whose links do not tell it yet."""
    async with opened() as house, AsyncExitStack() as rooms:
        await house.load(0)
        for machine, run_id in (("north", "a"), ("north", "b"), ("south", "c")):
            await house.offer(machine, run_id)
        assert await lost(house, guild_id=1) == "north"
        house.clock.advance(waited_s)
        taken = [await rooms.enter_async_context(house.processes.taken(guild_id)) for guild_id in (2, 3, 4)]
        assert [seat.machine for seat in taken] == machines
        for seat in taken:
            await seat.give_up()


@pytest.mark.asyncio
async def test_a_machine_that_is_lost_while_a_seat_is_handed_back_is_gone() -> None:
    """The database is away, and with it the machine, as when the bot's own machine is cut off."""
    async with opened() as house:
        await house.offer("north")
        async with house.processes.taken(1) as seat:
            seat.hand_back()
            await house.links.aclose()
        await until(lambda: not house.processes._distant)
        assert house.processes.machines()[1] == MachineLoad("north", gone_since=house.clock.now())


@pytest.mark.asyncio
async def test_a_process_that_is_given_up_may_not_come_back_with_its_room() -> None:
    """Its link is closed. It comes back as the room that it has by then, and is refused, so it hands over."""
    async with opened() as house:
        link = await house.offer("north")
        async with house.processes.taken(10) as seat:
            link.room = RoomIdentity(10, 20, run_id="a", machine="north")
            await seat.give_up()
            assert (seat.is_open, seat.may_go_on) == (False, True)
        assert "given up" in str(await link.refused())


@pytest.mark.asyncio
async def test_a_process_that_was_cut_off_from_the_bot_may_not_come_back_without_its_room(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its room goes on elsewhere, and nobody could tell it that it gets no other one. It ends when it is refused, and
    its machine loads the next process. The latest ones are remembered.
    """
    monkeypatch.setattr(room_processes, "MOST_RETIRED", 2)
    async with opened() as house:
        for number, run_id in enumerate("abc"):
            async with AsyncExitStack() as north:
                for emergency in (False, True):
                    room = RoomIdentity(0, 0, run_id=run_id, machine="north", emergency=emergency)
                    await north.enter_async_context(GatewayLink(house.elsewhere.url, CLUSTER_TOKEN, room))
                assert await lost_with_its_links(house, north, guild_id=number + 1) == "north"
            await until(lambda: not house.processes._distant)
        for run_id in "bc":
            with pytest.raises(RoomRefusedError, match="given up"):
                await house.offer("north", run_id, emergency=True)
        await house.offer("south", "b")
        await house.offer("north", "d")
        assert waiting_machines(house.processes) == {"north", "south"}
        assert len(house.processes._retired) == 2


@pytest.mark.asyncio
@pytest.mark.parametrize("is_given_up", [True, False])
async def test_a_room_whose_link_ended_before_it_had_its_seat_is_lost_at_once(is_given_up: bool) -> None:
    """It ran on without a gateway process, and took too long to be admitted. Nobody waits for the end of its link."""
    async with opened() as house:
        link = MessageLink(cast("Any", None), Handlers(), name="ended")
        link.close()
        adopted = AdoptedRoom(RoomIdentity(10, 20, run_id="a", machine="north"), link, lambda: None)
        async with asyncio.timeout(PATIENCE_S), house.processes.taken(10, adopted) as seat:
            assert await seat.lost() == LOST
            if is_given_up:
                await seat.give_up()
        assert distant_rooms(house) == 0


@pytest.mark.asyncio
async def test_who_has_no_cluster_token_or_no_proper_name_is_refused() -> None:
    """The token of this machine's own processes is none for others, and the other way round."""
    async with opened() as house:
        await until(lambda: house.started)
        child = RoomIdentity(0, 0, run_id=house.started[0])
        north = RoomIdentity(0, 0, run_id="a", machine="north")
        for url, token, room, why in (
            (house.elsewhere.url, TOKEN * 2, north, "does not have the token"),
            (house.here.url, CLUSTER_TOKEN, child, "refused the token"),
            (house.here.url, TOKEN, north, "not started by this bot"),
            (house.elsewhere.url, CLUSTER_TOKEN, child, "not started by this bot"),
            (house.elsewhere.url, CLUSTER_TOKEN, RoomIdentity(0, 0, machine="a b"), "not started by this bot"),
            (house.elsewhere.url, CLUSTER_TOKEN, RoomIdentity(0, 0, machine="n" * 65), "not started by this bot"),
        ):
            with pytest.raises(RoomRefusedError, match=why):
                async with GatewayLink(url, token, room):
                    pass
        assert waiting_machines(house.processes) == set()


@pytest.mark.asyncio
async def test_a_process_of_another_machine_offers_several_seats_and_ends_with_its_last_room() -> None:
    """It is filled before the next process of that machine, and gets no room after its last one."""
    async with opened() as house, AsyncExitStack() as rooms:
        waiting, *_ = [await house.offer("north", "a") for _ in range(3)]
        await house.offer("north", "b")
        taken = [await rooms.enter_async_context(house.processes.taken(guild_id)) for guild_id in range(2)]
        assert [seat.run_id for seat in taken] == ["a", "a"]
        assert distant_rooms(house) == 2
        await taken[0].give_up()
        assert (taken[1].is_open, waiting_machines(house.processes)) == (True, {"north"})
        await taken[1].give_up()
        await rooms.aclose()
        with pytest.raises(RoomRefusedError, match="given up"):
            await house.offer("north", "a", guild_id=10)
        async with house.processes.taken(1) as seat:
            assert seat.run_id == "b"
            await seat.give_up()
        del waiting


def is_with_others(error: ProcessLostError) -> bool:
    """Return whether the machine lost other processes too."""
    return error.loss.with_others


def nobody_waits(house: House) -> bool:
    """Return whether no process waits for a room."""
    return not waiting_machines(house.processes)


@pytest.mark.asyncio
async def test_a_room_knows_whether_its_machine_lost_other_processes_too() -> None:
    """A process that waited there is missed as well, so the room is not at fault. One elsewhere tells nothing."""
    for also in ("north", "south"):
        async with opened() as house, AsyncExitStack() as waiting:
            await house.offer("north", "a")
            error = ProcessLostError(LOST)
            with suppress(ProcessLostError):
                async with house.processes.taken(1) as seat:
                    assert seat.run_id == "a"
                    room = RoomIdentity(0, 0, run_id="spare", machine=also)
                    await waiting.enter_async_context(GatewayLink(house.elsewhere.url, CLUSTER_TOKEN, room))
                    await seat.give_up()
                    raise error
            assert not error.loss.with_others
            await waiting.aclose()
            if also == "north":
                await until(partial(is_with_others, error))
            else:
                await until(partial(nobody_waits, house))
                assert not error.loss.with_others
