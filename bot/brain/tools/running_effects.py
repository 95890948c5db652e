"""Calls with side effects that run. They go on when the reply that they belong to has been cancelled.

Somebody who talks over the bot ends its reply, but not what they have just ordered: half done, nobody could say what
became of it.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self


class RunningEffects:
    """The calls of one room. *Ownership*: they are cancelled when the block ends; `finish` first lets them end."""

    def __init__(self) -> None:
        self._running: set[asyncio.Task[str]] = set()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.cancel()
        if self._running:
            await asyncio.wait(self._running)

    @property
    def running(self) -> bool:
        """Whether a call has not ended."""
        return bool(self._running)

    def keep(self, task: asyncio.Task[str]) -> None:
        """Own a call that runs."""
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    def cancel(self) -> None:
        """Cancel all calls."""
        for task in self._running:
            task.cancel()

    async def finish(self, *, within_s: float) -> None:
        """Wait until all calls have ended, for so many seconds at most."""
        if self._running:
            await asyncio.wait(self._running, timeout=within_s)
