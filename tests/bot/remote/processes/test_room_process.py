"""The processes of rooms: one waits loaded, a room takes it, and none outlives its use."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections import defaultdict
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

import pytest
from structlog.testing import capture_logs

from bot.errors import SetupError, first_cause
from bot.remote.link.gateway_link import GatewayLink
from bot.remote.link.hello import RoomIdentity, RoomRefusedError
from bot.remote.link.listener import RemoteRoomListener
from bot.remote.messages.room_messages import NoMoreRooms
from bot.remote.processes import seated_process
from bot.remote.processes.room_child import ENDED, FROZEN, RoomChild
from bot.remote.processes.room_processes import RoomProcesses
from bot.remote.processes.spare_pool import SPARE_AFTER_S, SparePool
from compaction.errors import StoreError
from tests.bot.remote.peers import TOKEN, is_there, until, waiting_machines
from tests.fakes.cancellation import cancelled_elsewhere
from tests.fakes.clock import FakeClock
from voice.cancellation import CancelledInsideError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence

    from bot.remote.processes.room_seat import RoomSeat

pytestmark = pytest.mark.process

SLEEPS = (sys.executable, "-c", "import time; time.sleep(600)")
FAILS = (sys.executable, "-c", "raise SystemExit(1)")


class House:
    """Processes that do nothing; the test opens their links in their place. `started`: the numbers of their runs."""

    def __init__(self, rooms_each: int) -> None:
        self.clock = FakeClock()
        self.started: list[str] = []
        self.program = SLEEPS
        self.processes = RoomProcesses(self._command, self.clock, rooms_each=rooms_each)
        # How many rooms have a seat, as a test counts them.
        self.seated = 0
        self.listener = RemoteRoomListener(self.processes.on_link, TOKEN)
        self.links: defaultdict[int, AsyncExitStack] = defaultdict(AsyncExitStack)
        self.logged: Sequence[Mapping[str, Any]] = ()

    def _command(self, run_id: str) -> tuple[str, ...]:
        self.started.append(run_id)
        return self.program

    async def load(self, number: int, *, seats: int = 1) -> list[GatewayLink]:
        """Let the process of that number be loaded, with so many links."""
        await until(lambda: len(self.started) > number)
        return [await self.seat(number) for _ in range(seats)]

    async def seat(self, number: int, *, emergency: bool = False) -> GatewayLink:
        """Let the process of that number open one more link."""
        room = RoomIdentity(0, 0, run_id=self.started[number], emergency=emergency)
        link = GatewayLink(self.listener.url, TOKEN, room)
        return await self.links[number].enter_async_context(link)

    async def kill(self, number: int) -> None:
        """Kill that process; its links end with it."""
        with suppress(ProcessLookupError):
            os.kill(self.pid(number), signal.SIGKILL)
        await self.links[number].aclose()

    async def leave(self, number: int, dismissed: asyncio.Event) -> None:
        """Let that process end by itself once it is dismissed, and refused if it opens one more link."""
        await until(dismissed.is_set)
        with pytest.raises(RoomRefusedError, match="given up"):
            await self.seat(number)
        os.kill(self.pid(number), signal.SIGTERM)

    def pid(self, number: int) -> int:
        """Return the number that the system has given to a process."""
        begun = (line for line in self.logged if line["event"] == "room_process_started")
        return {str(line["run_id"]): int(line["pid"]) for line in begun}[self.started[number]]


@asynccontextmanager
async def opened(*, rooms_each: int = 1) -> AsyncIterator[House]:
    """Open a house, and end every process."""
    house = House(rooms_each)
    with capture_logs() as house.logged:
        async with house.listener, house.processes:
            try:
                yield house
            finally:
                for number in range(len(house.started)):
                    await house.kill(number)


@pytest.mark.asyncio
async def test_a_room_gets_the_process_that_waits_and_the_next_is_loaded_later() -> None:
    """Not at once: loading would take the processor from the room that has just begun."""
    async with opened() as house:
        await house.load(0)
        async with house.processes.taken(1) as seat:
            assert (seat.run_id, seat.is_open) == (house.started[0], True)
            await until(lambda: house.clock.sleeping)
            assert len(house.started) == 1
            house.clock.advance(SPARE_AFTER_S)
            await house.load(1)
            await seat.give_up()
        async with house.processes.taken(1) as another:
            assert another.run_id == house.started[1]
            await another.give_up()
        assert not is_there(house.pid(0))


@pytest.mark.asyncio
async def test_a_killed_process_and_a_frozen_one_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first is reaped; the second has only lost its link, and is killed."""
    async with opened() as house:
        await house.load(0)
        async with house.processes.taken(1) as seat:
            losing = asyncio.create_task(seat.lost())
            await house.kill(0)
            assert await losing == ENDED
        house.clock.advance(SPARE_AFTER_S)
        await house.load(1)
        async with house.processes.taken(1) as frozen:
            os.kill(house.pid(1), signal.SIGSTOP)
            monkeypatch.setattr(seated_process, "REAPED_WITHIN_S", 0.0)
            losing = asyncio.create_task(frozen.lost())
            frozen.link.close()
            assert await losing == FROZEN
            await frozen.give_up()
            assert not frozen.may_go_on
        assert not is_there(house.pid(1))


@pytest.mark.asyncio
async def test_a_process_that_does_not_start_is_told_and_tried_again() -> None:
    """Whoever wants a room gets a sentence; the one that waits is tried again after a pause."""
    async with opened() as house:
        house.program = FAILS
        with pytest.raises(SetupError, match="could not be started"):
            async with house.processes.taken(1):
                pass
        await until(lambda: house.clock.sleeping)


@pytest.mark.asyncio
async def test_nobody_else_is_let_in() -> None:
    """A process that this bot did not start is refused, even with the token; and one that has a room."""
    async with opened() as house:
        await house.load(0)
        for room in (RoomIdentity(0, 0, run_id="another"), RoomIdentity(10, 20, run_id=house.started[0])):
            with pytest.raises(RoomRefusedError, match="not started by this bot"):
                async with GatewayLink(house.listener.url, TOKEN, room):
                    pass


@pytest.mark.asyncio
async def test_a_process_whose_seat_is_handed_back_waits_again() -> None:
    """The room could not begin, for a reason outside of the process: it opens its link again for the next room."""
    async with opened() as house:
        await house.load(0)
        await house.seat(0, emergency=True)
        for _ in range(2):
            with suppress(StoreError):
                async with house.processes.taken(1) as seat:
                    seat.hand_back()
                    raise StoreError("The database is away.")
            await until(lambda: waiting_machines(house.processes))
        async with house.processes.taken(2) as again:
            assert (again.run_id, is_there(house.pid(0))) == (house.started[0], True)
            await again.give_up()


@pytest.mark.asyncio
async def test_a_process_that_loads_for_nobody_any_more_is_ended_at_once() -> None:
    """The room that waited for it was closed."""
    async with opened() as house:
        await until(lambda: any(line["event"] == "room_process_started" for line in house.logged))
        waiting = asyncio.create_task(_taken(house, 1))
        await until(lambda: house.processes._all()[0].seats.rooms)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        assert not is_there(house.pid(0))
        assert "room_process_killed" not in [line["event"] for line in house.logged], "nobody waited for its end"


@pytest.mark.asyncio
async def test_a_process_that_hangs_at_its_end_does_not_outlive_a_room_that_is_cut_off() -> None:
    """The room waits for its process and is cut off. Nobody else would end that."""
    async with opened() as house:
        await house.load(0)

        async def room() -> None:
            async with house.processes.taken(1) as seat:
                seat.link.close()

        leaving = asyncio.create_task(room())
        await until(lambda: bool(house.processes._all()) and house.processes._all()[0].seats._is_dismissed)
        leaving.cancel()
        await asyncio.gather(leaving, return_exceptions=True)
        assert leaving.cancelled()
        assert not is_there(house.pid(0))


@pytest.mark.asyncio
async def test_no_process_outlives_the_bot() -> None:
    """The one that waits ends too."""
    async with opened() as house:
        await house.load(0)
        async with house.processes.taken(1) as seat:
            assert is_there(house.pid(0))
            await seat.give_up()
    assert not is_there(house.pid(0))


# -- several rooms in one process -------------------------------------------------------------------------------------


@asynccontextmanager
async def rooms_in(house: House, *guild_ids: int) -> AsyncIterator[list[RoomSeat]]:
    """Yield a seat for each room."""
    async with AsyncExitStack() as stack:
        yield [await stack.enter_async_context(house.processes.taken(guild_id)) for guild_id in guild_ids]


@pytest.mark.asyncio
async def test_rooms_share_a_process_until_it_is_full() -> None:
    """The next one gets the process that waits, which stays empty until then."""
    async with opened(rooms_each=2) as house:
        await house.load(0, seats=2)
        async with rooms_in(house, 1) as (first,):
            await until(lambda: house.clock.sleeping)
            house.clock.advance(SPARE_AFTER_S)
            await house.load(1, seats=2)
            async with rooms_in(house, 2, 3) as (second, third):
                runs = [seat.run_id for seat in (first, second, third)]
                assert runs == [house.started[0], house.started[0], house.started[1]]
                assert len({id(seat.link) for seat in (first, second, third)}) == 3
                await house.kill(0)
                await house.kill(1)


@pytest.mark.asyncio
async def test_rooms_that_begin_together_wait_for_one_process() -> None:
    """They do not start one each while it is loading."""
    async with opened(rooms_each=3) as house:
        await until(lambda: any(line["event"] == "room_process_started" for line in house.logged))
        taking = [asyncio.create_task(_taken(house, guild_id)) for guild_id in (1, 2, 3)]
        for _ in range(20):
            await asyncio.sleep(0)
        await house.load(0, seats=3)
        assert [await task for task in taking] == [house.started[0]] * 3
        assert len(house.started) == 1


async def _taken(house: House, guild_id: int) -> str:
    """Return in which run a room has got a seat; it ends once all three have one."""
    async with house.processes.taken(guild_id) as seat:
        house.seated += 1
        await until(lambda: house.seated == 3)
        await house.kill(0)
        return seat.run_id


@pytest.mark.asyncio
async def test_a_room_that_is_given_up_takes_no_other_one_down() -> None:
    """Its link is closed and it may go on, so it has to be fenced. Its process lives, and gets it no more."""
    async with opened(rooms_each=2) as house:
        await house.load(0, seats=2)
        async with rooms_in(house, 1) as (innocent,):
            async with house.processes.taken(2) as stubborn:
                await stubborn.give_up()
                assert (stubborn.is_open, stubborn.may_go_on) == (False, True)
            assert (innocent.is_open, is_there(house.pid(0))) == (True, True)
            await house.seat(0)
            house.clock.advance(SPARE_AFTER_S)
            await house.load(1, seats=2)
            async with rooms_in(house, 3, 2) as (new, again):
                assert (new.run_id, again.run_id) == (house.started[0], house.started[1])
                await again.give_up()
                new.link.close()
            await innocent.give_up()
            assert not innocent.may_go_on
        assert not is_there(house.pid(0))


@pytest.mark.asyncio
async def test_a_process_that_dies_loses_all_its_rooms() -> None:
    """Each of them gets a seat in the one that waits."""
    async with opened(rooms_each=2) as house:
        await house.load(0, seats=2)
        async with rooms_in(house, 1, 2) as lost:
            house.clock.advance(SPARE_AFTER_S)
            await house.load(1, seats=2)
            losing = [asyncio.create_task(seat.lost()) for seat in lost]
            await house.kill(0)
            assert [await task for task in losing] == [ENDED, ENDED]
            async with rooms_in(house, 1, 2) as found:
                assert [seat.run_id for seat in found] == [house.started[1]] * 2
                await house.kill(1)


@pytest.mark.asyncio
async def test_a_process_ends_with_its_last_room() -> None:
    """Its seats that wait are told so, and no other one is let in; it has one link for each room at most, and one more
    for an emergency.
    """
    async with opened(rooms_each=2) as house:
        await house.load(0, seats=2)
        waiting = await house.seat(0, emergency=True)
        dismissed = asyncio.Event()
        waiting.handlers.hear(NoMoreRooms, lambda _: dismissed.set())
        with pytest.raises(RoomRefusedError, match="one link for each"):
            await house.seat(0)
        async with rooms_in(house, 1) as (first,):
            async with rooms_in(house, 2) as (second,):
                second.link.close()
            await until(lambda: waiting_machines(house.processes))
            assert (first.is_open, is_there(house.pid(0)), dismissed.is_set()) == (True, True, False)
            leaving = asyncio.create_task(house.leave(0, dismissed))
            first.link.close()
        await leaving
        assert not is_there(house.pid(0))


@pytest.mark.asyncio
async def test_a_spare_that_is_cancelled_by_mistake_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else no process would be loaded any more, and each room would wait for its own. A failed task is in /healthz."""
    pool = SparePool(lambda _: SLEEPS, RoomChild, FakeClock())
    monkeypatch.setattr(pool, "start", cancelled_elsewhere)
    with pytest.raises(ExceptionGroup) as caught:
        await pool.keep()
    assert isinstance(first_cause(caught.value), CancelledInsideError)
