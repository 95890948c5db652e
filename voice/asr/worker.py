"""What the speech model's thread does: it loads an engine, and runs one recognition at a time, or one batch.

A call that never returns cannot be stopped from outside. The thread is then left behind, and `reloading_model`
decides whether another one takes its place.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

from voice.audio import duration_s
from voice.errors import RecogniserError, RecogniserHungError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence, Sized

    from voice.asr.port import Recognition, RecognitionRequest
    from voice.daemon_thread import DaemonThread


FULL_WINDOW_S = 30.0
MIN_WINDOW_S = 8.0
TRAILING_SILENCE_S = 6.0
# 8 tokens a second is twice what a fast speaker needs, so only a loop reaches it.
TOKENS_PER_S = 8
TOKENS_AT_LEAST = 12
# Whisper's text context; the prompt counts too.
MAX_TOKENS = 448


def encoder_window_s(duration_s: float) -> float:
    """Return how many seconds of speech and silence Whisper encodes for so many of speech: 30 at most."""
    length_s = min(FULL_WINDOW_S, max(MIN_WINDOW_S, duration_s + TRAILING_SILENCE_S))
    # Rounded up to 0.1 s: the encoder's second convolution halves an even number of frames.
    return math.ceil(round(length_s * 10, 6)) / 10


def token_cap(duration_s: float) -> int:
    """Return the most tokens of the answer to so many seconds of speech, of which the first 30 are used."""
    return math.ceil(TOKENS_PER_S * min(duration_s, FULL_WINDOW_S)) + TOKENS_AT_LEAST


T = TypeVar("T")

# Windows that differ by less than this are of like length.
BUCKET_S: Final = 2.0


class Engine(ABC):
    """A speech model that blocks while it computes. Used from one thread."""

    @abstractmethod
    def recognise_together(self, requests: Sequence[RecognitionRequest], *, others: Sized = ()) -> list[Recognition]:
        """Return the texts of requests that fit together (`fit_together`), in their order.

        `others`: the requests that wait by now, seen before work that could be left out. Raises `RecogniserError` for
        all of the requests.
        """

    def load(self) -> Engine:
        """Return the engine with its model loaded, in the thread that uses it. Raises `RecogniserError`."""
        return self

    def recognise(self, request: RecognitionRequest) -> Recognition:
        """Return the text of one sound. Raises `RecogniserError`."""
        return self.recognise_together([request])[0]


def fit_together(first: RecognitionRequest, other: RecognitionRequest) -> bool:
    """Return whether two recognitions may be computed together: those of like length.

    All sounds of a batch are encoded with the window of the longest, and the model's time is that of the longest text,
    so sounds of unlike length would cost more together. What is heard with more work is computed alone.
    """
    return not first.careful and not other.careful and _bucket(first) == _bucket(other)


def _bucket(request: RecognitionRequest) -> tuple[int, bool]:
    """Return the bucket of the window's length, and whether there is a glossary: only then the model gets a text that
    comes before.
    """
    return math.ceil(encoder_window_s(duration_s(request.pcm)) / BUCKET_S), bool(request.glossary)


async def loaded_in(thread: DaemonThread, engine: Engine, *, within_s: float) -> Engine:
    """Return the engine, loaded in the thread. Raises `RecogniserError`."""
    try:
        return await thread.run(partial(plainly, engine.load, "could not be loaded"), within_s=within_s)
    except TimeoutError as exc:
        raise RecogniserHungError(
            f"The speech model was not loaded within {within_s:g} s: its disk or the GPU hangs, or it is too "
            "large for this machine. Look at the disk, hide the GPU (CUDA_VISIBLE_DEVICES=-1), or take a smaller one "
            "(asr.model)."
        ) from exc
    except RuntimeError as exc:
        raise RecogniserError(
            "The system allows no further thread for the speech model; raise its limit on processes and threads."
        ) from exc


def plainly(call: Callable[[], T], failure: str) -> T:
    """Return what `call` returns. Raises nothing but `RecogniserError`. `failure`: what the model did then."""
    try:
        return call()
    except RecogniserError:
        raise
    except Exception as exc:
        raise RecogniserError(f"The speech model {failure}: {exc}") from exc
