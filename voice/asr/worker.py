"""The thread that owns the speech model: it loads the model and runs one recognition at a time, or one batch.

A call that never returns cannot be stopped from outside. The thread is then abandoned, and `voice.asr.reloading_model`
decides whether another one takes its place. It is a daemon and holds none of our locks.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import queue
import sys
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from voice.errors import RecogniserError, RecogniserHungError
from voice.thread_future import call_in_loop, fail, succeed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from voice.asr.port import Recognition
    from voice.audio import Pcm

# Where recognition leaves no core free, what is due on the event loop, in the packet reader and in the turn-end
# detector goes first. Beside a recogniser that never rested, on two cores that others used too, the detector had no
# answer within its 0.4 s in 9 of 33 pauses at the usual priority, in 3 of 39 at this one, and in 4 of 38 at 10.
NICENESS = 5


def nobody_waits() -> bool:
    """Return False: whoever calls an engine without a queue waits alone."""
    return False


class Engine(Protocol):
    """A speech model that blocks while it computes. Used from one thread."""

    def recognise(
        self, pcm: Pcm, *, language: str | None = None, glossary: tuple[str, ...] = (), careful: bool = False
    ) -> Recognition:
        """Return the text of `pcm`; `careful`: with more work. Raises `RecogniserError`."""

    def recognise_together(
        self, requests: Sequence[RecognitionRequest], *, others_wait: Callable[[], bool] = nobody_waits
    ) -> list[Recognition]:
        """Return the texts of requests that fit together (`voice.asr.batching`), in their order.

        `others_wait`: whether other requests wait by now; asked before work that could be left out. Raises
        `RecogniserError` for all of the requests.
        """


@dataclass(frozen=True, slots=True)
class RecognitionRequest:
    pcm: Pcm
    language: str | None
    glossary: tuple[str, ...]
    careful: bool = False


@dataclass(frozen=True, slots=True)
class _Job:
    requests: tuple[RecognitionRequest, ...]
    others_wait: Callable[[], bool]
    answer: asyncio.Future[list[Recognition]]


class ModelThread:
    """One loaded engine in one daemon thread.

    *Ownership*: the caller of `start` must call `stop` or `abandon`. *Cancellation*: after a cancelled wait the thread
    finishes its computation, and the result is dropped.
    """

    def __init__(self, load: Callable[[], Engine], *, name: str = "speech-model") -> None:
        self._load = load
        self._loop = asyncio.get_running_loop()
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._loaded: asyncio.Future[None] = self._loop.create_future()
        self._ended: asyncio.Future[None] = self._loop.create_future()
        self._current: asyncio.Future[list[Recognition]] | None = None
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    @property
    def is_alive(self) -> bool:
        return self._thread.is_alive() and not self._ended.done()

    async def start(self, *, timeout_s: float) -> None:
        """Start the thread and wait until the model is loaded. Raises `RecogniserError`."""
        try:
            self._thread.start()
        except RuntimeError as exc:
            raise RecogniserError(
                "The system allows no further thread for the speech model; raise its limit on processes and threads."
            ) from exc
        try:
            async with asyncio.timeout(timeout_s):
                await self._loaded
        except TimeoutError as exc:
            self.abandon()
            raise RecogniserHungError(
                f"The speech model was not loaded within {timeout_s:g} s: its disk or the GPU hangs, or it is too "
                'large for this machine. Look at the disk, set asr.device = "cpu", or take a smaller one (asr.model).'
            ) from exc
        except BaseException:
            self.abandon()
            raise

    async def run(
        self, *requests: RecognitionRequest, others_wait: Callable[[], bool] = nobody_waits
    ) -> list[Recognition]:
        """Run the requests on the engine, together. `others_wait` is called in the thread.

        Raises `RecogniserError`, also if the thread died.
        """
        if not self.is_alive:
            raise RecogniserError("The speech model's thread has ended.")
        answer: asyncio.Future[list[Recognition]] = self._loop.create_future()
        # If the thread dies after this line, `_on_ended` fails the answer.
        self._current = answer
        self._jobs.put(_Job(requests, others_wait, answer))
        return await answer

    def abandon(self) -> None:
        """Let the thread end by itself, without waiting for it."""
        self._jobs.put(None)

    async def stop(self, *, timeout_s: float) -> bool:
        """End the thread after its current recognition; return False if it takes longer than `timeout_s`."""
        self.abandon()
        if not self._thread.is_alive():
            return True
        try:
            async with asyncio.timeout(timeout_s):
                await asyncio.shield(self._ended)
        except TimeoutError:
            return False
        # The thread may still be freeing the model. If the interpreter ended now, the library's destructors would abort
        # the process.
        await asyncio.to_thread(self._thread.join, timeout_s)
        return not self._thread.is_alive()

    def _run(self) -> None:
        why = "it was told to"
        _give_way()
        try:
            engine = self._load_engine()
            if engine is not None:
                self._serve(engine)
        except BaseException as exc:  # noqa: BLE001 - the thread's last act is to say why it dies
            why = repr(exc)
        finally:
            self._post(self._on_ended, why)

    def _load_engine(self) -> Engine | None:
        try:
            engine = self._load()
        except RecogniserError as exc:
            self._post(fail, self._loaded, exc)
            return None
        except Exception as exc:  # noqa: BLE001 - whatever it is, it must reach the one who waits
            self._post(fail, self._loaded, RecogniserError(f"The speech model could not be loaded: {exc}"))
            return None
        self._post(succeed, self._loaded, None)
        return engine

    def _serve(self, engine: Engine) -> None:
        while (job := self._jobs.get()) is not None:
            if job.answer.cancelled():
                continue
            try:
                answer = engine.recognise_together(job.requests, others_wait=job.others_wait)
            except RecogniserError as exc:
                self._post(fail, job.answer, exc)
            except Exception as exc:  # noqa: BLE001 - an engine's own errors must not end the thread
                self._post(fail, job.answer, RecogniserError(f"The speech model failed: {exc}"))
            else:
                self._post(succeed, job.answer, answer)

    def _post(self, call: Callable[..., None], *args: object) -> None:
        call_in_loop(self._loop, call, *args)

    def _on_ended(self, why: str) -> None:
        succeed(self._ended, None)
        fail(self._loaded, RecogniserError(f"The speech model's thread ended while loading: {why}."))
        if not self._loaded.cancelled():
            # Mark the exception as retrieved: after a successful start nobody waits for this future.
            self._loaded.exception()
        if self._current is not None:
            fail(self._current, RecogniserError(f"The speech model's thread died: {why}."))


def _give_way() -> None:
    """Lower the priority of this thread, and of those that the model starts from it. Linux alone has it by thread."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError):
            thread = threading.get_native_id()
            os.setpriority(os.PRIO_PROCESS, thread, max(NICENESS, os.getpriority(os.PRIO_PROCESS, thread)))
