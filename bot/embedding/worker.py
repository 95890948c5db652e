"""Runs an embedding model in a thread of its own, one text at a time, so that an urgent text waits for one other."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Protocol, Self

from bot.errors import ModelError
from compaction.errors import EmbeddingError
from voice.daemon_thread import LOAD_TIMEOUT_S, STOP_TIMEOUT_S, DaemonThread

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import TracebackType

    import numpy as np
    from numpy.typing import NDArray

# A text takes about 7 ms and waits for at most one of each other caller. Whoever answers a person gives up much sooner.
EMBED_TIMEOUT_S = 60.0


class EmbeddingEngine(Protocol):
    """A loaded model, used only in the thread that loaded it."""

    def embed(self, text: str) -> NDArray[np.float32]:
        """Return the unit vector of a text."""


class ThreadedEmbedder:
    """An embedding model in its own thread. Use it with `async with`; safe for all tasks of one loop.

    *Ownership*: it owns the thread, which ends after the current text; one that hangs is left behind. *Cancellation* of
    `embed` drops the texts that have not begun.
    """

    def __init__(self, load: Callable[[], EmbeddingEngine], *, model: str) -> None:
        self._load = load
        self._model = model
        self._thread = DaemonThread("embedder")
        self._engine: EmbeddingEngine | None = None

    @property
    def model(self) -> str:
        """Return the name that vectors are stored under."""
        return self._model

    async def __aenter__(self) -> Self:
        """Start the thread and load the model. Raises `ModelError` if it is missing or can't be read."""
        try:
            self._engine = await self._thread.run(self._load, within_s=LOAD_TIMEOUT_S)
        except BaseException as exc:
            self._thread.close()
            if isinstance(exc, ModelError) or not isinstance(exc, Exception):
                raise
            raise ModelError(f"The embedding model {self._model} could not be loaded: {type(exc).__name__}.") from exc
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        self._engine = None
        await self._thread.stop(within_s=STOP_TIMEOUT_S)

    async def embed(self, texts: Sequence[str], *, urgent: bool = False) -> Sequence[Sequence[float]]:
        """Return one unit vector per text. Raises `EmbeddingError`. See `compaction.ports.Embedder`.

        A caller has one text in the thread's queue at a time, so nothing has to overtake: `urgent` changes nothing.
        """
        return [await self._embed(text) for text in texts]

    async def _embed(self, text: str) -> Sequence[float]:
        if self._engine is None:
            raise EmbeddingError("The embedding model does not run.", retryable=False)
        try:
            vector = await self._thread.run(partial(self._engine.embed, text), within_s=EMBED_TIMEOUT_S)
        except Exception as exc:
            raise EmbeddingError(f"The embedding model failed: {type(exc).__name__}.", retryable=False) from exc
        return list(map(float, vector))
