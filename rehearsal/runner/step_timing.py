"""When a step began, when it will be over, and when it is: what other steps wait for."""

from __future__ import annotations

import asyncio


class StepTiming:
    """One step's marks in time (loop seconds). Any number of tasks may wait; each mark is set once."""

    def __init__(self) -> None:
        """Begin with a step that has not begun."""
        self._promised = 0.0
        self._begun = asyncio.Event()
        self._over = asyncio.Event()

    def begin(self, promised_end: float) -> None:
        """The step has begun and will be over at `promised_end`."""
        self._promised = promised_end
        self._begun.set()

    def end(self, at: float) -> None:
        """The step is over, whether or not it said when it began."""
        if not self._begun.is_set():
            self.begin(at)
        self._over.set()

    async def promised_end(self) -> float:
        """Wait until the step has begun and return when it will be over."""
        await self._begun.wait()
        return self._promised

    async def ended(self) -> None:
        """Wait until the step is over."""
        await self._over.wait()
