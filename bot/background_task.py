"""Runs a task beside a block of code."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Coroutine


@asynccontextmanager
async def background_task(work: Coroutine[object, object, object], *, name: str) -> AsyncIterator[None]:
    """Run `work` as a task of this name for the duration of the block, then cancel it and wait for its end.

    What it raises is asyncio's to report, so work that shall go on handles its own failures.
    """
    task = asyncio.create_task(work, name=name)
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait({task})
