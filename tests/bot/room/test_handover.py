"""A room is left to the next process at a pause in speech, and soon where nobody pauses."""

from __future__ import annotations

import asyncio

import pytest

from bot.room.guild_room import PAUSE_S, WITHIN_S, until_pause
from bot.room.rooms import Rooms
from tests.fakes.place import FakePlace
from tests.fakes.rooms import House
from tests.fakes.virtual_time import LoopClock, run_virtually


class VirtualClock(LoopClock):
    """The clock of the virtual loop."""

    async def sleep(self, seconds: float) -> None:
        """Let other tasks run meanwhile."""
        await asyncio.sleep(seconds)


def waited_s(*spoken: tuple[float, float]) -> float:
    """Return how long is waited while somebody speaks in these spans of seconds."""

    async def wait() -> float:
        clock = VirtualClock()
        begun_at = clock.monotonic()

        def is_busy() -> bool:
            now = clock.monotonic() - begun_at
            return any(begins <= now < ends for begins, ends in spoken)

        await until_pause(is_busy, clock)
        return clock.monotonic() - begun_at

    return run_virtually(wait())


@pytest.mark.parametrize(
    ("spoken", "expected_s"),
    [
        ((), PAUSE_S),
        (((0.0, 3.0),), 3.7),
        (((0.0, 3.0), (3.3, 5.0)), 5.5),
        (((0.0, 9.0),), 9.1),
        (((0.0, 60.0),), WITHIN_S),
    ],
)
def test_the_first_pause_that_is_long_enough_is_taken(
    spoken: tuple[tuple[float, float], ...], expected_s: float
) -> None:
    """A second at first, and less and less; in mid-sentence where nobody pauses."""
    assert waited_s(*spoken) == pytest.approx(expected_s, abs=0.15)


def test_a_room_that_is_handed_over_leaves_its_session_open() -> None:
    """The next process goes on with it. Nobody can open another room here."""

    async def hand_over() -> None:
        house, place = House(), FakePlace()
        async with Rooms(house.make, clock=VirtualClock(), end_session=house.end_session) as rooms:
            await rooms.join(place)
            await rooms.hand_over()
            assert house.rooms[0].end.result() == "handed_over"
            assert house.sessions_ended == []
            assert rooms.faults() != [], "it takes no more rooms"

    run_virtually(hand_over())
