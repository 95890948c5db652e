"""A thread that runs one call after the other and does not keep the process from ending.

The standard library's executors wait for their threads when the process ends, so a call that hangs in native code would
keep a process alive that has long closed everything.
"""

from __future__ import annotations

import contextlib
import queue
import threading
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


class DaemonThread:
    """One daemon thread. It runs from `start` until `close`, and a call that runs then to its own end.

    The caller of `submit` bounds how many calls wait.
    """

    def __init__(self, name: str) -> None:
        self._calls: queue.SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def submit(self, call: Callable[[], T]) -> Future[T]:
        """Run `call` after those before it. A future that is cancelled before its call has begun is passed over."""
        future: Future[T] = Future()
        self._calls.put((future, call))
        return future

    def close(self) -> None:
        """Let the thread end without waiting for it. Calls that have not begun are cancelled."""
        with contextlib.suppress(queue.Empty):
            while True:
                waiting = self._calls.get_nowait()
                if waiting is not None:
                    waiting[0].cancel()
        self._calls.put(None)

    def join(self, timeout_s: float) -> None:
        """Wait until the thread has ended, after `close`, but not for longer than that. Blocks."""
        self._thread.join(timeout_s)

    def _run(self) -> None:
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
