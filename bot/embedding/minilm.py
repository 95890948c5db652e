"""all-MiniLM-L6-v2 as int8 ONNX: sentences of any length become unit vectors of 384 components.

One thread of its own runs the model, one text at a time: about 10 ms each on one core, and a batch would save
nothing there. Somebody who waits (`urgent`) goes before what is merely indexed, so waits for one text at most.
Pooling and length: the model card of sentence-transformers/all-MiniLM-L6-v2 (mean of the token vectors).
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import queue
import threading
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from bot.errors import ModelError
from compaction.errors import EmbeddingError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path
    from types import TracebackType

    from numpy.typing import NDArray

MODEL_NAME = "all-MiniLM-L6-v2-onnx-int8"
WIDTH = 384
# Word pieces of a text that are read: what the model was trained with; a turn is rarely longer.
MAX_TOKENS = 128
# Loading takes 0.3 s; a disk that needs longer is broken.
LOAD_TIMEOUT_S = 30.0
# The text being embedded when the process ends.
STOP_TIMEOUT_S = 2.0
# Texts of indexing that may wait; the indexer hands over far fewer at once.
MAX_WAITING = 1_000

_Job = tuple[str, "asyncio.Future[NDArray[np.float32]]"]


class MiniLmEmbedder:
    """The model in its own thread. Made by `async with`; safe for all tasks of one loop.

    *Ownership*: it owns the thread, and ends it after the text it is at. *Cancellation* of `embed` leaves what is
    not begun undone.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._jobs: queue.PriorityQueue[tuple[int, int, _Job | None]] = queue.PriorityQueue()
        self._numbers = itertools.count()
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._dead: str | None = None

    @property
    def model(self) -> str:
        """Return the name that vectors are stored under."""
        return MODEL_NAME

    async def __aenter__(self) -> Self:
        """Load the model. Raises `ModelError` when it isn't there or can't be read."""
        self._loop = asyncio.get_running_loop()
        loaded: asyncio.Future[None] = self._loop.create_future()
        self._thread = threading.Thread(target=self._run, args=(loaded,), name="embedder", daemon=True)
        self._thread.start()
        try:
            async with asyncio.timeout(LOAD_TIMEOUT_S):
                await loaded
        except TimeoutError as exc:
            self._jobs.put((-1, next(self._numbers), None))
            raise ModelError(
                f"The embedding model in {self._directory} was not loaded within {LOAD_TIMEOUT_S:g} s."
            ) from exc
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        self._dead = "it was closed"
        self._jobs.put((-1, next(self._numbers), None))
        if self._thread is not None:
            await asyncio.to_thread(self._thread.join, STOP_TIMEOUT_S)

    async def embed(self, texts: Sequence[str], *, urgent: bool = False) -> Sequence[Sequence[float]]:
        """Return one unit vector a text. Raises `EmbeddingError`. See `compaction.ports.Embedder`."""
        if self._dead is not None or self._loop is None:
            raise EmbeddingError(
                f"The embedding model does not run: {self._dead or 'it was never started'}.", retryable=False
            )
        if not urgent and self._jobs.qsize() + len(texts) > MAX_WAITING:
            raise EmbeddingError("Too many texts wait to be embedded. They are embedded later.", retryable=True)
        answers: list[asyncio.Future[NDArray[np.float32]]] = [self._loop.create_future() for _ in texts]
        for text, answer in zip(texts, answers, strict=True):
            self._jobs.put((0 if urgent else 1, next(self._numbers), (text, answer)))
        try:
            return [(await answer).tolist() for answer in answers]
        finally:
            for answer in answers:
                answer.cancel()

    def _run(self, loaded: asyncio.Future[None]) -> None:
        """Be the thread: load, then embed what comes until told to stop."""
        try:
            engine = _Engine(self._directory)
        except ModelError as exc:
            self._post(_fail, loaded, exc)
            return
        self._post(_succeed, loaded, None)
        while (job := self._jobs.get()[2]) is not None:
            text, answer = job
            if answer.done():
                continue
            try:
                self._post(_succeed, answer, engine.embed(text))
            except Exception as exc:  # noqa: BLE001 - whatever the runtime raises must reach who waits
                self._post(
                    _fail, answer, EmbeddingError(f"The embedding model failed: {type(exc).__name__}.", retryable=False)
                )

    def _post(self, call: Callable[..., None], *args: Any) -> None:
        assert self._loop is not None, "the thread is started by a running loop"
        # The loop may be closed while the last text is embedded; then nobody waits.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(call, *args)


class _Engine:
    """Tokenizer and model; of the thread that made it."""

    def __init__(self, directory: Path) -> None:
        # Imported here: half a second that only those pay who embed.
        import onnxruntime
        from tokenizers import Tokenizer

        options = onnxruntime.SessionOptions()
        # The recogniser needs the other cores.
        options.intra_op_num_threads = 1
        options.inter_op_num_threads = 1
        options.log_severity_level = 4
        try:
            self._tokenizer = Tokenizer.from_file(str(directory / "tokenizer.json"))
            self._session = onnxruntime.InferenceSession(
                str(directory / "model.onnx"), sess_options=options, providers=["CPUExecutionProvider"]
            )
            self._inputs = {node.name for node in self._session.get_inputs()}
        except Exception as exc:
            raise ModelError(
                f"The embedding model in {directory} cannot be read. Run `roomtone models pull embed --again`, or set "
                "recall.embedder to off."
            ) from exc
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(max_length=MAX_TOKENS)

    def embed(self, text: str) -> NDArray[np.float32]:
        # A lone surrogate is no text that a tokenizer takes.
        ids = self._tokenizer.encode(text.encode("utf-8", "replace").decode("utf-8")).ids
        tokens = np.array([ids], dtype=np.int64)
        given = {"input_ids": tokens, "attention_mask": np.ones_like(tokens), "token_type_ids": np.zeros_like(tokens)}
        hidden = self._session.run(None, {name: value for name, value in given.items() if name in self._inputs})[0]
        pooled: NDArray[np.float32] = hidden[0].mean(axis=0)
        return pooled / max(float(np.linalg.norm(pooled)), 1e-9)


def _succeed(future: asyncio.Future[Any], value: object) -> None:
    if not future.done():
        future.set_result(value)


def _fail(future: asyncio.Future[Any], exc: Exception) -> None:
    if not future.done():
        future.set_exception(exc)
