"""An event loop whose clock jumps to the next timer as soon as nothing else is to be done.

Timeouts, backoffs and deadlines run in no time and in the right order; nothing sleeps.
"""

from __future__ import annotations

import asyncio
import selectors
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Coroutine

_T = TypeVar("_T")
# The wall clock's time when the loop's clock is at zero.
EPOCH_S = 1_760_000_000.0


class _JumpingSelector(selectors.SelectSelector):
    """A selector that never waits: where it would, the clock jumps instead."""

    def __init__(self) -> None:
        super().__init__()
        # No machine's clock says nought, and what subtracts from it should not find less.
        self.now_s = 1000.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if not ready and timeout is None:
            raise RuntimeError("Every task waits for something that nothing will bring.")
        if not ready and timeout is not None and timeout > 0:
            self.now_s += timeout
        return ready


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """The loop. It is for one thread without any real waiting: no sockets, no subprocesses."""

    def __init__(self) -> None:
        self._jumping = _JumpingSelector()
        super().__init__(self._jumping)

    def time(self) -> float:
        """Return the virtual moment. It starts at 1000."""
        return self._jumping.now_s


class LoopClock:
    """The running loop's time, as the clock a session reads."""

    def now(self) -> float:
        """Return UTC epoch seconds."""
        return EPOCH_S + asyncio.get_running_loop().time()

    def monotonic(self) -> float:
        """Return seconds that never go back."""
        return asyncio.get_running_loop().time()


def run_virtually(main: Coroutine[Any, Any, _T]) -> _T:
    """Run a coroutine to its end in virtual time."""
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(main)
