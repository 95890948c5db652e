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
        # Each with whoever asked for it.
        self._running: dict[asyncio.Task[str], int | None] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.cancel()
        if self._running:
            await asyncio.wait(self._running)

    def runs_for(self, asker_id: int | None) -> bool:
        """Return whether a call has not ended that this person asked for."""
        return asker_id in self._running.values()

    def keep(self, task: asyncio.Task[str], asker_id: int | None) -> None:
        """Own a call that runs. `asker_id`: the person who asked for it."""
        self._running[task] = asker_id
        task.add_done_callback(self._running.pop)

    def cancel(self) -> None:
        """Cancel all calls."""
        for task in tuple(self._running):
            task.cancel()

    async def finish(self, *, within_s: float) -> None:
        """Wait until all calls have ended, for so many seconds at most."""
        if self._running:
            await asyncio.wait(self._running, timeout=within_s)
