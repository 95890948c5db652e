"""The system clock's wall time and monotonic time, and the fake clock for tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from bot.clock import SystemClock


def test_a_clock_that_is_set_back_goes_on_and_one_that_is_set_forward_follows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise what somebody says after they were forgotten would count as said before."""
    readings = iter([(1_000.0, 5.0), (400.0, 8.0), (1_009.0, 9.0)])
    monkeypatch.setattr("bot.clock.time", _Times(readings))
    clock = SystemClock()
    assert [clock.now() for _ in range(3)] == [1_000.0, 1_003.0, 1_009.0]


class _Times:
    """A machine's wall clock and monotonic clock, as it tells them in turn."""

    def __init__(self, readings: Iterator[tuple[float, float]]) -> None:
        self._readings = readings
        self._wall = 0.0

    def monotonic(self) -> float:
        self._wall, monotonic = next(self._readings)
        return monotonic

    def time(self) -> float:
        return self._wall
