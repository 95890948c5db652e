"""Turns SIGINT, SIGTERM and SIGHUP into an event, so that a command shuts down properly.

A second signal ends it at once, and so does a shutdown that takes too long.
"""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, TypeVar

import structlog
import typer

from bot.background_task import owned_task
from bot.cli.failures import INTERRUPTED

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Coroutine, Iterator

log = structlog.get_logger()

T = TypeVar("T")

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# A runner (make, timeout, a shell) may deliver one Ctrl-C twice; a person presses it again later than this.
SAME_SIGNAL_S = 2.0
# What the service manager sees of a shutdown that took too long.
TIMED_OUT = 1


@contextmanager
def stop_on_signals(stop: asyncio.Event, *, within_s: float | None = None) -> Iterator[None]:
    """Set `stop` at the first signal. A signal more than `SAME_SIGNAL_S` later ends the process at once, and so does a
    block that lasts longer than `within_s` after the first one.

    Nothing is lost then: every turn is stored already, and the next start resumes the session.
    """
    loop = asyncio.get_running_loop()
    # A closed terminal sends SIGHUP, which `nohup` lets its command ignore.
    numbers = [each for each in _SIGNALS if each != signal.SIGHUP or signal.getsignal(each) != signal.SIG_IGN]
    first_at: float | None = None
    deadline: asyncio.TimerHandle | None = None

    def on_deadline() -> None:
        log.error("stop_timed_out", timeout_s=within_s, remedy="the next start goes on with the sessions")
        os._exit(TIMED_OUT)

    def on_signal() -> None:
        nonlocal first_at, deadline
        stop.set()
        if first_at is None:
            first_at = loop.time()
            if within_s is not None:
                deadline = loop.call_later(within_s, on_deadline)
        elif loop.time() - first_at > SAME_SIGNAL_S:
            os._exit(INTERRUPTED)

    for number in numbers:
        loop.add_signal_handler(number, on_signal)
    try:
        yield
    finally:
        if deadline is not None:
            deadline.cancel()
        for number in numbers:
            loop.remove_signal_handler(number)


@asynccontextmanager
async def unless_stopped(stop: asyncio.Event, entered: AbstractAsyncContextManager[T]) -> AsyncIterator[T | None]:
    """Enter a context for the duration of the block and yield its value; None: `stop` was set before it was entered,
    and it has closed in order what it had opened by then.
    """
    # The stop is a time limit that ends now: it is entered in this task, which leaves it too, as task groups want it.
    limit = asyncio.timeout(None)

    async def end() -> None:
        await stop.wait()
        limit.reschedule(asyncio.get_running_loop().time())

    async with AsyncExitStack() as stack:
        value: T | None = None
        try:
            async with limit, owned_task(end(), name="stop-of-the-start"):
                value = await stack.enter_async_context(entered)
        except TimeoutError:
            if not limit.expired():
                raise
        yield value


async def until_stopped(work: Coroutine[object, object, T]) -> T:
    """Run `work` and return its result, or cancel it at such a signal and raise `typer.Abort`.

    *Ownership*: its task has ended when this returns.
    """
    stop = asyncio.Event()
    with stop_on_signals(stop):
        async with (
            owned_task(stop.wait(), name="stop-of-the-work") as stopped,
            owned_task(work, name="stoppable-work") as run,
        ):
            await asyncio.wait({run, stopped}, return_when=asyncio.FIRST_COMPLETED)
            if run.done():
                return run.result()
            raise typer.Abort
