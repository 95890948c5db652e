"""Answers futures of an event loop from another thread: in the loop, once, and not at all if the loop is closed."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable


def call_in_loop(loop: asyncio.AbstractEventLoop, call: Callable[..., None], *args: object) -> None:
    """Run `call(*args)` in the loop, from another thread. Nothing happens if the loop is closed: nobody waits then."""
    with contextlib.suppress(RuntimeError):
        loop.call_soon_threadsafe(call, *args)


def succeed(future: asyncio.Future[Any], value: object) -> None:
    """Set the result of a future that is neither answered nor cancelled. In its loop only."""
    if not future.done():
        future.set_result(value)


def fail(future: asyncio.Future[Any], exc: Exception) -> None:
    """Set the exception of a future that is neither answered nor cancelled. In its loop only."""
    if not future.done():
        future.set_exception(exc)
