"""Each frame leaves at its own deadline, so delays do not add up."""

from __future__ import annotations

import pytest

from rehearsal.people.pacing import LATE_S, Pacer


class _Time:
    """A clock that moves only during `sleep`, which takes `stall_s` longer once."""

    def __init__(self) -> None:
        self.now = 100.0
        self.slept: list[float] = []
        self.stall_s = 0.0

    def clock(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds + self.stall_s
        self.stall_s = 0.0


@pytest.mark.asyncio
async def test_frames_leave_every_20_ms() -> None:
    """Without delays, each frame leaves at its deadline."""
    time = _Time()
    pacer = Pacer(0.02, clock=time.clock, sleep=time.sleep)
    left = [await pacer.until(index) for index in range(50)]
    assert left == pytest.approx([100.0 + 0.02 * index for index in range(50)])
    assert pacer.late_frames == 0


@pytest.mark.asyncio
async def test_a_stall_does_not_add_up() -> None:
    """After a stall of 95 ms, the late frames leave at once and the following frames are on time."""
    time = _Time()
    pacer = Pacer(0.02, clock=time.clock, sleep=time.sleep)
    left = []
    for index in range(20):
        if index == 5:
            time.stall_s = 0.095
        left.append(await pacer.until(index))
    assert left[5] == pytest.approx(100.195)
    assert left[6:10] == pytest.approx([100.195, 100.195, 100.195, 100.195])
    assert left[10:] == pytest.approx([100.0 + 0.02 * index for index in range(10, 20)])
    assert pacer.late_frames == 5
    assert pacer.worst_late_s == pytest.approx(0.095)
    assert pacer.worst_late_s > LATE_S


@pytest.mark.asyncio
async def test_a_late_frame_still_yields() -> None:
    """While late frames leave, other tasks run between them."""
    time = _Time()
    pacer = Pacer(0.02, clock=time.clock, sleep=time.sleep)
    time.now += 1.0
    for index in range(10):
        await pacer.until(index)
    assert time.slept == [0.0] * 10
