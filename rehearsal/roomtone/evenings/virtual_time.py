"""An event loop whose clock jumps to the next timer as soon as no other work is left.

Timeouts, backoffs and deadlines take no real time and happen in the right order. Nothing really sleeps, and nothing
depends on where objects are in memory, so the same work happens in the same order each time.
"""

from __future__ import annotations

import asyncio
import itertools
import math
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

_T = TypeVar("_T")
# The time of the wall clock when the clock of the loop is at zero.
EPOCH_S = 1_760_000_000.0
# Times that differ by rounding alone are one.
_ROUNDING = 1e-6


class _JumpingSelector(selectors.SelectSelector):
    """A selector that never waits. Where a usual selector would wait, this one moves the clock forward."""

    def __init__(self) -> None:
        super().__init__()
        # The clock does not start at zero, because the clock of a real machine is never at zero and code that subtracts
        # from the time should not get a negative result.
        self.now_s = 1000.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is not None and timeout <= 0:
            # There is work, so that no file has to be looked at.
            return []
        ready = super().select(0)
        if not ready and timeout is None:
            raise RuntimeError("Every task waits for something that nothing will bring.")
        if not ready and timeout is not None and timeout > 0:
            self.now_s += timeout
        return ready


class _NumberedTask(asyncio.Task[Any]):
    """A task whose place in a set follows from its number: `asyncio.TaskGroup` cancels its tasks in such an order."""

    def __init__(self, work: Coroutine[Any, Any, Any], *, number: int, **more: Any) -> None:
        self._number = number
        super().__init__(work, **more)

    def __hash__(self) -> int:
        return self._number


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """An event loop in virtual time. It works for one thread without any real waiting: no sockets and no
    subprocesses.
    """

    def __init__(self) -> None:
        self._jumping = _JumpingSelector()
        super().__init__(self._jumping)
        numbers = itertools.count()
        self.set_task_factory(lambda loop, work, **more: _NumberedTask(work, number=next(numbers), loop=loop, **more))

    def time(self) -> float:
        """Return the virtual time in seconds, which starts at 1000."""
        return self._jumping.now_s

    def run_in_executor(self, executor: object, func: Callable[..., _T], *args: object) -> asyncio.Future[_T]:
        """Run the function at once, since the clock would not wait for a thread."""
        done = self.create_future()
        try:
            done.set_result(func(*args))
        except Exception as exc:  # noqa: BLE001 - whoever awaits the future gets it
            done.set_exception(exc)
        return done


class LoopClock:
    """Implements `bot.clock.Clock` with the time of the running loop. `grid_s`: sleepers wake at multiples of it alone,
    so that what looks every few milliseconds does so less often.
    """

    def __init__(self, *, grid_s: float = 0.0) -> None:
        self._grid_s = grid_s

    def now(self) -> float:
        """Return UTC epoch seconds."""
        return EPOCH_S + asyncio.get_running_loop().time()

    def monotonic(self) -> float:
        """Return seconds that never go back."""
        return asyncio.get_running_loop().time()

    async def sleep(self, seconds: float) -> None:
        """Wait for `seconds`, and on to the next point of the grid. Can be cancelled at any time."""
        now = asyncio.get_running_loop().time()
        due = now + seconds
        if self._grid_s:
            due = math.ceil(due / self._grid_s - _ROUNDING) * self._grid_s
        await asyncio.sleep(max(0.0, due - now))


def run_virtually(main: Coroutine[Any, Any, _T]) -> _T:
    """Run a coroutine to its end in virtual time."""
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(main)
