"""The clock that what waits for long is given, so that a test need not wait."""

from __future__ import annotations

from typing import Protocol


class AsyncClock(Protocol):
    """Time, and sleep."""

    def monotonic(self) -> float:
        """Return seconds that never go backwards."""

    async def sleep(self, seconds: float) -> None:
        """Sleep for `seconds`."""
