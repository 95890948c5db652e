"""Engines of recognisers without a model: one that a function answers for, and one for the queue in front of it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence, Sized

from voice.asr.port import Recognition, RecognitionRequest
from voice.asr.worker import Engine
from voice.audio import duration_s
from voice.errors import RecogniserError


def recognition(
    text: str = "we leave at nine",
    *,
    language: str = "en",
    mean_logprob: float = -0.2,
    compression_ratio: float = 1.1,
    no_speech_probability: float = 0.01,
    duration_s: float = 2.0,
    language_probability: float = 1.0,
) -> Recognition:
    """Return a plausible recognition, with the values that the test changes."""
    return Recognition(
        text=text,
        language=language,
        mean_logprob=mean_logprob,
        compression_ratio=compression_ratio,
        no_speech_probability=no_speech_probability,
        duration_s=duration_s,
        compute_s=0.01,
        language_probability=language_probability,
    )


def _recognised(text: str, request: RecognitionRequest) -> Recognition:
    language = request.language if isinstance(request.language, str) else "en"
    return recognition(text, language=language, duration_s=duration_s(request.pcm))


class AnsweringEngine(Engine):
    """An `Engine` without a model: `answer` says what each request has for a text."""

    def __init__(self, answer: Callable[[RecognitionRequest], Recognition]) -> None:
        self._answer = answer

    def recognise_together(self, requests: Sequence[RecognitionRequest], *, others: Sized = ()) -> list[Recognition]:
        """See `Engine.recognise_together`."""
        return [self._answer(each) for each in requests]


class FakeEngine(Engine):
    """An `Engine` whose recognitions the test can hold back and release. It answers with the value of the first sample.

    If that value is -1, the engine raises its usual error; -2 raises an unexpected error.
    """

    def __init__(self, *, held: bool = False) -> None:
        self._gate = threading.Event()
        self.careful: list[bool] = []
        # How many recognitions were computed together, each time.
        self.batches: list[int] = []
        # Whether others waited when a recognition had been computed, each time.
        self.others_waited: list[bool] = []
        self.started = threading.Event()
        self.order: list[int] = []
        if not held:
            self._gate.set()

    def release(self) -> None:
        """Let all recognitions go on."""
        self._gate.set()

    def recognise(self, request: RecognitionRequest) -> Recognition:
        """See `Engine.recognise`."""
        self.started.set()
        self._gate.wait()
        label = int(request.pcm[0])
        self.order.append(label)
        self.careful.append(request.careful)
        if label == -1:
            raise RecogniserError("The model failed.")
        if label == -2:
            raise RuntimeError("a bug")
        return _recognised(str(label), request)

    def recognise_together(self, requests: Sequence[RecognitionRequest], *, others: Sized = ()) -> list[Recognition]:
        """See `Engine.recognise_together`."""
        self.batches.append(len(requests))
        found = [self.recognise(each) for each in requests]
        self.others_waited.append(bool(others))
        return found
