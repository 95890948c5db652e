"""Calls with side effects that go on when the reply that they belong to has been cancelled.

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
        for task in self._running:
            task.cancel()
        await self.finish()

    def keep(self, task: asyncio.Task[str]) -> None:
        """Own a call that runs. Its time limit bounds how long."""
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def finish(self) -> None:
        """Wait until all calls have ended."""
        if self._running:
            await asyncio.wait(self._running)
