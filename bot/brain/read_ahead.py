"""Reads an answer in a task of its own, ahead of whoever speaks it."""

from __future__ import annotations

import asyncio
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING

from bot.brain.speech_output import broken_off

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator


class ReadAhead:
    """A stream that a task of its own reads at once. *Ownership*: `tasks` owns the task; nothing that happens in the
    stream ends the group.
    """

    def __init__(self, stream: AsyncGenerator[str, None], tasks: asyncio.TaskGroup) -> None:
        # The items, an error if there was one, and None at the end. It has no size: who makes the stream bounds it, and
        # one that had to wait for its reader would not be ahead.
        self._items: asyncio.Queue[str | Exception | None] = asyncio.Queue()
        self._begun = asyncio.Event()
        self._task = tasks.create_task(self._read(stream), name="generate-answer")

    def cancel(self) -> None:
        """Give the stream up; it ends."""
        self._task.cancel()

    async def comes_within(self, seconds: float) -> bool:
        """Wait for the first item, or the end, for so long. Return whether it is there."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._begun.wait()
        return self._begun.is_set()

    async def take(self) -> AsyncGenerator[str, None]:
        """Yield the stream from its beginning: what is ready at once, the rest as it comes. Raises its error. Call it
        once. *Cancellation*: closing the generator ends the stream.
        """
        try:
            while (item := await self._items.get()) is not None:
                if isinstance(item, Exception):
                    raise item
                yield item
        finally:
            self.cancel()

    async def _read(self, stream: AsyncGenerator[str, None]) -> None:
        try:
            async with aclosing(stream):
                async for item in stream:
                    self._items.put_nowait(item)
                    self._begun.set()
        except asyncio.CancelledError as error:
            self._items.put_nowait(broken_off(error))
        except Exception as error:  # noqa: BLE001 - raised again in `take`, if the stream is wanted
            self._items.put_nowait(error)
        finally:
            # Also if this task was cancelled: nobody may wait for more.
            self._items.put_nowait(None)
            self._begun.set()
