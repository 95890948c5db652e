"""Runs an embedding model in a thread of its own, one text at a time, so that an urgent text waits for one other."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Protocol, Self

from bot.errors import ModelError
from compaction.errors import EmbeddingError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import TracebackType

    import numpy as np
    from numpy.typing import NDArray

# Loading takes 2 s of CPU time, and much longer on a busy machine.
LOAD_TIMEOUT_S = 120.0


class EmbeddingEngine(Protocol):
    """A loaded model, used only in the thread that loaded it."""

    def embed(self, text: str) -> NDArray[np.float32]:
        """Return the unit vector of a text."""


class ThreadedEmbedder:
    """An embedding model in its own thread. Use it with `async with`; safe for all tasks of one loop.

    *Ownership*: it owns the thread, which ends after the current text. *Cancellation* of `embed` drops the texts that
    have not begun.
    """

    def __init__(self, load: Callable[[], EmbeddingEngine], *, model: str) -> None:
        self._load = load
        self._model = model
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="embedder")
        self._engine: EmbeddingEngine | None = None

    @property
    def model(self) -> str:
        """Return the name that vectors are stored under."""
        return self._model

    async def __aenter__(self) -> Self:
        """Start the thread and load the model. Raises `ModelError` if it is missing or can't be read."""
        try:
            async with asyncio.timeout(LOAD_TIMEOUT_S):
                self._engine = await asyncio.get_running_loop().run_in_executor(self._thread, self._load)
        except BaseException as exc:
            self._thread.shutdown(wait=False, cancel_futures=True)
            if isinstance(exc, ModelError) or not isinstance(exc, Exception):
                raise
            raise ModelError(f"The embedding model {self._model} could not be loaded: {type(exc).__name__}.") from exc
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        self._engine = None
        await asyncio.to_thread(self._thread.shutdown)

    async def embed(self, texts: Sequence[str], *, urgent: bool = False) -> Sequence[Sequence[float]]:
        """Return one unit vector per text. Raises `EmbeddingError`. See `compaction.ports.Embedder`.

        A caller has one text in the thread's queue at a time, so nothing has to overtake: `urgent` changes nothing.
        """
        return [await self._embed(text) for text in texts]

    async def _embed(self, text: str) -> Sequence[float]:
        if self._engine is None:
            raise EmbeddingError("The embedding model does not run.", retryable=False)
        try:
            vector = await asyncio.get_running_loop().run_in_executor(self._thread, self._engine.embed, text)
        except Exception as exc:
            raise EmbeddingError(f"The embedding model failed: {type(exc).__name__}.", retryable=False) from exc
        return list(map(float, vector))
