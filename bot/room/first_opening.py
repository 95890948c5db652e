"""Whether a guild's room has opened for the first time, for whoever called the bot. Later openings change nothing."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from bot.background_task import background_task

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from bot.room.port import SupervisedRoom


class FirstOpening:
    """The first opening of a guild's rooms. Make it on their loop."""

    def __init__(self) -> None:
        self._opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    @property
    def is_settled(self) -> bool:
        """Return whether a room has opened, or it is known why none did."""
        return self._opened.done()

    async def wait(self) -> None:
        """Wait until a room has opened. Raises why none did. *Cancellation*: the room goes on."""
        await asyncio.shield(self._opened)

    @asynccontextmanager
    async def watching(self, room: SupervisedRoom, *, name: str) -> AsyncIterator[None]:
        """Notice, for the duration of the block, that `room` opens. `name`: of the task that does so."""
        async with background_task(self._notice(room), name=name):
            yield

    async def _notice(self, room: SupervisedRoom) -> None:
        await room.opened.wait()
        if not self.is_settled:
            self._opened.set_result(None)

    def fail(self, error: Exception) -> None:
        """Raise `error` in `wait`, unless it is settled already."""
        if not self.is_settled:
            self._opened.set_exception(error)
            # Nobody may be waiting; mark the error as retrieved, since it is logged already.
            self._opened.exception()
