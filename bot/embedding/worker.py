"""Runs an embedding model in its own thread, one text at a time, urgent texts first.

Batches would save nothing on one core. Without batches an urgent text waits for one other text at most.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import queue
import threading
from typing import TYPE_CHECKING, Protocol, Self

from bot.errors import ModelError
from compaction.errors import EmbeddingError
from voice.queue_figures import QueueFigures
from voice.thread_future import call_in_loop, fail, succeed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import TracebackType

    import numpy as np
    from numpy.typing import NDArray

# Loading takes 0.3 s.
LOAD_TIMEOUT_S = 30.0
# Time for the current text when the process ends.
STOP_TIMEOUT_S = 2.0
# Most texts in the queue. The indexer adds far fewer at once.
MAX_WAITING = 1_000
_STOP, _URGENT, _NORMAL = range(3)
_NOT_STARTED = "The embedding model does not run: it was never started."
_CLOSED = "The embedding model does not run: it was closed."


class EmbeddingEngine(Protocol):
    """A loaded model, used only in the thread that loaded it."""

    def embed(self, text: str) -> NDArray[np.float32]:
        """Return the unit vector of a text."""


# A text and the future for its vector.
_Job = tuple[str, "asyncio.Future[NDArray[np.float32]]"]


class ThreadedEmbedder:
    """An embedding model in its own thread. Use it with `async with`; safe for all tasks of one loop.

    *Ownership*: it owns the thread, which ends after the current text. *Cancellation* of `embed` drops the texts that
    have not begun.
    """

    def __init__(self, load: Callable[[], EmbeddingEngine], *, model: str) -> None:
        self._load = load
        self._model = model
        self._jobs: queue.PriorityQueue[tuple[int, int, _Job | None]] = queue.PriorityQueue()
        self._numbers = itertools.count()
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._why_not: str | None = _NOT_STARTED
        self._refused = 0

    @property
    def model(self) -> str:
        """Return the name that vectors are stored under."""
        return self._model

    @property
    def queue(self) -> QueueFigures:
        """Return how many texts wait. Refused ones are embedded later."""
        return QueueFigures("embedding", self._jobs.qsize(), MAX_WAITING, {"full": self._refused})

    async def __aenter__(self) -> Self:
        """Start the thread and load the model. Raises `ModelError` if it is missing or can't be read."""
        self._loop = asyncio.get_running_loop()
        loaded: asyncio.Future[None] = self._loop.create_future()
        self._thread = threading.Thread(target=self._run, args=(loaded,), name="embedder", daemon=True)
        self._thread.start()
        try:
            async with asyncio.timeout(LOAD_TIMEOUT_S):
                await loaded
        except TimeoutError as exc:
            self._stop()
            raise ModelError(f"The embedding model {self._model} was not loaded within {LOAD_TIMEOUT_S:g} s.") from exc
        except BaseException:
            self._stop()
            raise
        self._why_not = None
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        self._stop()
        if self._thread is not None:
            await asyncio.to_thread(self._thread.join, STOP_TIMEOUT_S)

    async def embed(self, texts: Sequence[str], *, urgent: bool = False) -> Sequence[Sequence[float]]:
        """Return one unit vector per text. Raises `EmbeddingError`. See `compaction.ports.Embedder`."""
        if self._why_not is not None:
            raise EmbeddingError(self._why_not, retryable=False)
        if not urgent and self._jobs.qsize() + len(texts) > MAX_WAITING:
            self._refused += len(texts)
            raise EmbeddingError("Too many texts wait to be embedded. They are embedded later.", retryable=True)
        loop = asyncio.get_running_loop()
        answers: list[asyncio.Future[NDArray[np.float32]]] = [loop.create_future() for _ in texts]
        for text, answer in zip(texts, answers, strict=True):
            self._jobs.put((_URGENT if urgent else _NORMAL, next(self._numbers), (text, answer)))
        try:
            return [(await answer).tolist() for answer in answers]
        finally:
            for answer in answers:
                if not answer.cancel() and not answer.cancelled():
                    # Marks the exception as retrieved: of several failures only the first is raised.
                    answer.exception()

    def _run(self, loaded: asyncio.Future[None]) -> None:
        """The thread: load the model, then embed texts until `_stop`."""
        engine = self._load_engine(loaded)
        if engine is not None:
            self._serve(engine)
        self._refuse_the_rest()

    def _load_engine(self, loaded: asyncio.Future[None]) -> EmbeddingEngine | None:
        try:
            engine = self._load()
        except ModelError as exc:
            self._post(fail, loaded, exc)
            return None
        except Exception as exc:  # noqa: BLE001 - the caller gets every error
            self._post(fail, loaded, ModelError(f"The embedding model could not be loaded: {type(exc).__name__}."))
            return None
        self._post(succeed, loaded, None)
        return engine

    def _serve(self, engine: EmbeddingEngine) -> None:
        while (job := self._jobs.get()[2]) is not None:
            text, answer = job
            if answer.done():
                continue
            try:
                self._post(succeed, answer, engine.embed(text))
            except Exception as exc:  # noqa: BLE001 - the caller gets every error
                self._post(
                    fail, answer, EmbeddingError(f"The embedding model failed: {type(exc).__name__}.", retryable=False)
                )

    def _refuse_the_rest(self) -> None:
        """Answer who still waits. Nothing is added any more: `embed` refuses before the thread is told to end."""
        with contextlib.suppress(queue.Empty):
            while True:
                job = self._jobs.get_nowait()[2]
                if job is not None:
                    self._post(fail, job[1], EmbeddingError(_CLOSED, retryable=False))

    def _stop(self) -> None:
        self._why_not = _CLOSED
        self._jobs.put((_STOP, next(self._numbers), None))

    def _post(self, call: Callable[..., None], *args: object) -> None:
        assert self._loop is not None, "the thread is started by a running loop"
        call_in_loop(self._loop, call, *args)
