"""When a room starts again: crashes pause and are counted, machines that leave are not waited for."""

from __future__ import annotations

import pytest

from bot.room.endings import HandedOverError, ProcessLostError
from bot.room.restarts import LONGEST_PAUSE_S, LOST_AFTER_S, MOST_CRASHES, STABLE_S, RoomRestarts
from voice.errors import LinkError

CRASH = LinkError("Discord hung up.")
LOST = ProcessLostError("It is not there any more.")
HANDED_OVER = HandedOverError("It had to end.")
SHORT_S, LONG_S = LOST_AFTER_S - 1, LOST_AFTER_S


@pytest.mark.parametrize(
    ("ends", "pauses"),
    [
        pytest.param([(CRASH, 0.0)] * 5, [1.0, 2.0, 4.0, 8.0, 16.0], id="the pauses after crashes grow"),
        pytest.param([(CRASH, 0.0), (CRASH, STABLE_S)], [1.0, 1.0], id="a stable room's crash is the first again"),
        pytest.param([(LOST, 0.0)], [0.0], id="the first loss costs no pause, however soon it comes"),
        pytest.param(
            [(LOST, LONG_S), (LOST, SHORT_S)], [0.0, 2.0], id="a loss soon after another one may be its fault"
        ),
        pytest.param([(LOST, LONG_S)] * 5, [0.0] * 5, id="machines that fail one after the other cost no pause"),
        pytest.param([(CRASH, 0.0), (LOST, SHORT_S)], [1.0, 2.0], id="a loss soon after a crash pauses"),
        pytest.param([(LOST, LONG_S), (CRASH, LONG_S)], [0.0, 2.0], id="a crash after a loss is the second in a row"),
        pytest.param([(HANDED_OVER, 0.0)] * 9, [0.0] * 9, id="a room that is handed over has not crashed"),
        pytest.param([(CRASH, 0.0), (HANDED_OVER, 9.0), (CRASH, 9.0)], [1.0, 0.0, 2.0], id="nor is it stable by that"),
    ],
)
def test_what_a_room_waits_for(ends: list[tuple[Exception, float]], pauses: list[float]) -> None:
    """`ends`: why the room ended each time, after how many seconds."""
    restarts = RoomRestarts()
    assert [restarts.pause_after(error, ran_s=ran_s) for error, ran_s in ends] == pauses


@pytest.mark.parametrize("error", [CRASH, LOST])
def test_a_room_that_fails_again_and_again_stays_closed(error: Exception) -> None:
    """Also one that loses its process each time: it may be what ends them, and others share them."""
    restarts = RoomRestarts()
    pauses = [restarts.pause_after(error, ran_s=STABLE_S - 1) for _ in range(MOST_CRASHES + 1)]
    assert None not in pauses[:-1]
    assert pauses[-1] is None
    assert restarts.crashes == MOST_CRASHES + 1


def test_machines_that_fail_close_no_room() -> None:
    """A room whose machine goes with all its processes has not ended them, however often that happens."""
    restarts = RoomRestarts()
    for _ in range(3 * MOST_CRASHES):
        lost = ProcessLostError("It is not there any more.")
        # The others are missed after this one.
        assert restarts.pause_after(lost, ran_s=LONG_S) == 0.0
        lost.loss.with_others = True
        assert restarts.crashes == 0


def test_a_loss_with_others_does_not_pause() -> None:
    """Also soon after a crash: the room was not at fault."""
    restarts = RoomRestarts()
    lost = ProcessLostError("It is not there any more.")
    lost.loss.with_others = True
    assert restarts.pause_after(CRASH, ran_s=0.0) == 1.0
    assert restarts.pause_after(lost, ran_s=SHORT_S) == 0.0
    assert restarts.pause_after(CRASH, ran_s=SHORT_S) == 2.0


def test_no_pause_is_longer_than_the_longest() -> None:
    """The pauses that are possible before a room stays closed."""
    restarts = RoomRestarts()
    pauses = [restarts.pause_after(CRASH, ran_s=0.0) for _ in range(MOST_CRASHES)]
    assert all(pause is not None and pause <= LONGEST_PAUSE_S for pause in pauses)
