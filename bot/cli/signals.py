"""SIGINT and SIGTERM as an event, so that a command ends in order; asked again, it ends at once."""

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
# A runner (make, timeout, a shell) may pass one Ctrl-C on twice; a person who means it presses later.
SAME_SIGNAL_S = 2.0


@contextmanager
def stop_on_signals(stop: asyncio.Event, *, end_at_once: Callable[[int], object] = os._exit) -> Iterator[None]:
    """Set `stop` at the first signal. One that comes more than `SAME_SIGNAL_S` later ends the process at once.

    Nothing is lost by that: every turn is stored already, and the session is gone on with at the next start.
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
    """Return what `work` returns, or end what was started for it (a model's server, say) at SIGINT or SIGTERM.

    *Ownership*: its task is over when this returns. Raises `typer.Abort` at a signal.
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
