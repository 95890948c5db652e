"""What the local Discord does later: faults that delay, and clients that are waited for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class Timers:
    """What is to be done later. Use it only from the event loop's thread. *Ownership*: `close` drops what is left."""

    def __init__(self) -> None:
        self._left: set[asyncio.TimerHandle] = set()

    def later(self, seconds: float, act: Callable[..., object], *arguments: object) -> None:
        """Act after so many seconds, and never before the caller goes on."""

        def due() -> None:
            self._left.discard(timer)
            act(*arguments)

        timer = asyncio.get_running_loop().call_later(seconds, due)
        self._left.add(timer)

    def after(self, seconds: float, act: Callable[..., object], *arguments: object) -> None:
        """Act after so many seconds; 0: now."""
        if seconds:
            self.later(seconds, act, *arguments)
        else:
            act(*arguments)

    def close(self) -> None:
        for timer in self._left:
            timer.cancel()
        self._left.clear()
