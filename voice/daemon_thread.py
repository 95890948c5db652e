"""A thread that runs one call after the other and does not keep the process from ending.

The standard library's executors wait for their threads when the process ends, so a call that hangs in native code would
keep a process alive that has long closed everything. Embedded models are loaded and used in such threads.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import queue
import sys
import threading
from concurrent.futures import Future
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import structlog

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

# Seconds that loading a model may take; a large one from a slow disk takes a minute. A disk that hangs takes for ever.
LOAD_TIMEOUT_S: Final = 120.0
# A model answers within a second; a thread that computes for longer than this is not waited for at the end.
STOP_TIMEOUT_S: Final = 5.0

# Where recognition leaves no core free, what is due on the event loop, in the packet reader and in the turn-end
# detector goes first. Beside a recogniser that never rested, on two cores that others used too, the detector had no
# answer within its 0.4 s in 9 of 33 pauses at the usual priority, in 3 of 39 at this one, and in 4 of 38 at 10.
NICENESS: Final = 5
# What Linux keeps of a thread's name (`top -H`).
_NAME_CHARS: Final = 15

_log: Any = structlog.get_logger()


class DaemonThread:
    """One daemon thread. It runs from its first call until `close`, and a call that runs then to its own end.

    The caller of `run` bounds how many calls wait. `gives_way`: the thread, and those that a model starts from it,
    have a lower priority (`NICENESS`).
    """

    def __init__(self, name: str, *, gives_way: bool = False) -> None:
        self._gives_way = gives_way
        self._calls: queue.SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    @property
    def is_alive(self) -> bool:
        return self._thread.is_alive()

    def submit(self, call: Callable[[], T]) -> Future[T]:
        """Run `call` after those before it. A future that is cancelled before its call has begun is passed over.

        Raises `RuntimeError` if the system allows no further thread.
        """
        if self._thread.ident is None:
            self._thread.start()
        future: Future[T] = Future()
        self._calls.put((future, call))
        return future

    async def run(self, call: Callable[[], T], *, within_s: float) -> T:
        """Return what `call` returns, after those before it. Raises `TimeoutError`, and whatever `submit` and `call`
        raise.

        *Cancellation*: a call that has begun goes on, and its result is dropped; so it is after a `TimeoutError`.
        """
        async with asyncio.timeout(within_s):
            return await asyncio.wrap_future(self.submit(call))

    async def stop(self, *, within_s: float) -> None:
        """Close, and wait for the end of the thread. One that hangs is left behind.

        If the interpreter ended while a model computes, the library's destructors could abort the process.
        """
        self.close()
        if self.is_alive:
            await asyncio.to_thread(self._thread.join, within_s)
        if self.is_alive:
            _log.warning("model_thread_left_behind", worker=self._thread.name, waited_s=within_s)

    def close(self) -> None:
        """Let the thread end without waiting for it. Calls that have not begun are cancelled."""
        with contextlib.suppress(queue.Empty):
            while True:
                waiting = self._calls.get_nowait()
                if waiting is not None:
                    waiting[0].cancel()
        self._calls.put(None)

    def _run(self) -> None:
        if sys.platform == "linux":  # which alone has priorities of threads, and tells their names
            with contextlib.suppress(OSError):
                thread = threading.get_native_id()
                # Threads that a model starts from here inherit both.
                Path(f"/proc/self/task/{thread}/comm").write_text(self._thread.name[:_NAME_CHARS], "utf-8")
                if self._gives_way:
                    os.setpriority(os.PRIO_PROCESS, thread, max(NICENESS, os.getpriority(os.PRIO_PROCESS, thread)))
        while (waiting := self._calls.get()) is not None:
            future, call = waiting
            if not future.set_running_or_notify_cancel():
                continue
            try:
                result = call()
            except BaseException as error:  # noqa: BLE001 - whatever it is, it must reach the one who waits
                future.set_exception(error)
            else:
                future.set_result(result)
