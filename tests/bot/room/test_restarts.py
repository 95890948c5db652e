"""When a room starts again: crashes pause and are counted."""

from __future__ import annotations

import pytest

from bot.room.lifecycle import LONGEST_PAUSE_S, MOST_CRASHES, STABLE_S, RoomRestarts


@pytest.mark.parametrize(
    ("ran_s", "pauses"),
    [
        pytest.param([0.0] * 5, [1.0, 2.0, 4.0, 8.0, 16.0], id="the pauses after crashes grow"),
        pytest.param([0.0, STABLE_S], [1.0, 1.0], id="a stable room's crash is the first again"),
    ],
)
def test_how_long_a_room_waits(ran_s: list[float], pauses: list[float]) -> None:
    """`ran_s`: after how many seconds the room crashed each time."""
    restarts = RoomRestarts()
    assert [restarts.pause_after(ran_s=each) for each in ran_s] == pauses


def test_a_room_that_crashes_again_and_again_stays_closed() -> None:
    """However long it ran, unless it was stable. No pause is longer than the longest."""
    restarts = RoomRestarts()
    pauses = [restarts.pause_after(ran_s=STABLE_S - 1) for _ in range(MOST_CRASHES + 1)]
    assert all(pause is not None and pause <= LONGEST_PAUSE_S for pause in pauses[:-1])
    assert pauses[-1] is None
    assert restarts.crashes == MOST_CRASHES + 1
