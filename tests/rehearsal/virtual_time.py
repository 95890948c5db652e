"""An event loop whose clock jumps to the next thing due, so that minutes of a scenario take milliseconds."""

from __future__ import annotations

import asyncio
import selectors
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Coroutine

_T = TypeVar("_T")


class _JumpingSelector(selectors.DefaultSelector):
    """Polls, and where the loop would have slept it moves the clock instead."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 1000.0

    def select(self, timeout: float | None = None) -> Any:
        ready = super().select(0)
        if not ready:
            if timeout is None:
                raise AssertionError("nothing is due and nothing will ever come: the code under test hangs")
            self.now += max(0.0, timeout)
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    """`time()` starts at 1000 and never waits."""

    def __init__(self) -> None:
        self._jumping = _JumpingSelector()
        super().__init__(self._jumping)

    def time(self) -> float:
        """Return the virtual moment."""
        return self._jumping.now


def run_virtually(main: Coroutine[Any, Any, _T]) -> _T:
    """Run `main` to its end on a `VirtualLoop`."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main)
