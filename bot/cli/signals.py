"""Turns SIGINT and SIGTERM into an event, so that a command shuts down properly; a second signal ends it at once."""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

import typer

from bot.cli.failures import INTERRUPTED

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator

T = TypeVar("T")

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
# A runner (make, timeout, a shell) may deliver one Ctrl-C twice; a person presses it again later than this.
SAME_SIGNAL_S = 2.0


@contextmanager
def stop_on_signals(stop: asyncio.Event, *, end_at_once: Callable[[int], object] = os._exit) -> Iterator[None]:
    """Set `stop` at the first signal. A signal more than `SAME_SIGNAL_S` later ends the process at once.

    Nothing is lost then: every turn is stored already, and the next start resumes the session.
    """
    loop = asyncio.get_running_loop()
    first_at: float | None = None

    def on_signal() -> None:
        nonlocal first_at
        stop.set()
        if first_at is None:
            first_at = loop.time()
        elif loop.time() - first_at > SAME_SIGNAL_S:
            end_at_once(INTERRUPTED)

    for number in _SIGNALS:
        loop.add_signal_handler(number, on_signal)
    try:
        yield
    finally:
        for number in _SIGNALS:
            loop.remove_signal_handler(number)


async def until_stopped(work: Coroutine[object, object, T]) -> T:
    """Run `work` and return its result, or cancel it at SIGINT or SIGTERM and raise `typer.Abort`.

    *Ownership*: its task has ended when this returns.
    """
    stop = asyncio.Event()
    with stop_on_signals(stop):
        run = asyncio.create_task(work, name="stoppable-work")
        stopped = asyncio.create_task(stop.wait(), name="stop-of-the-work")
        try:
            await asyncio.wait({run, stopped}, return_when=asyncio.FIRST_COMPLETED)
            if run.done():
                return run.result()
            raise typer.Abort
        finally:
            stopped.cancel()
            run.cancel()
            await asyncio.wait({run, stopped})
