"""Measures how late the event loop of a process is: what keeps it busy delays every room and page in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from bot.clock import Clock

MEASURE_EVERY_S: Final = 5.0


async def measure_lag(on_lag: Callable[[float], None], clock: Clock) -> None:
    """Give `on_lag` every few seconds how many seconds late the event loop was, until cancelled."""
    while True:
        before = clock.monotonic()
        await clock.sleep(MEASURE_EVERY_S)
        on_lag(max(0.0, clock.monotonic() - before - MEASURE_EVERY_S))
