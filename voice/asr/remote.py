"""The recogniser of an endpoint that speaks OpenAI's `/v1/audio/transcriptions`: OpenAI, Speaches, vLLM, whisper.cpp …

It sets the deadline, asks for as many figures as the endpoint gives (Whisper's own, the tokens' log probabilities, or
none), and turns each of the library's errors into one plain sentence. Neither sound nor text ever enters a message.
"""

from __future__ import annotations

import asyncio
import io
import json
import math
import time
import wave
from enum import Enum
from typing import TYPE_CHECKING, Any, Self

import openai
import structlog

from voice.asr.glossary import glossary_prompt
from voice.asr.language_names import language_code
from voice.asr.port import Recognition
from voice.asr.repetition import compression_ratio
from voice.audio import LISTEN_RATE_HZ, duration_s
from voice.endpoint import Remedies, describe_failure
from voice.errors import RecogniserError, RecogniserOverloadedError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import TracebackType

    from voice.audio import Pcm
    from voice.endpoint import Endpoint

_log: Any = structlog.get_logger()

_REMEDIES = Remedies(section="asr", answer="transcription", refused="asr.model and asr.language")
# Endpoints serve rooms side by side; more than this at once is a backlog, and a guess would only lengthen it.
CALLS_AT_ONCE = 8
# Seconds that the endpoint may take over one utterance; then the local model recognises it.
TIMEOUT_S = 6.0
# What an utterance is cut at, here and in the local model.
LONGEST_S = 30.0
# OpenAI refuses sound shorter than this, and nobody says anything in it.
SHORTEST_S = 0.1
# Half a minute of fast speech is 700 characters. What sends more is no recogniser.
MAX_TEXT_CHARS = 4_000
MAX_ANSWER_BYTES = 1_000_000
# Where the endpoint says nothing of how sure it is: believed, but not so far that 'Thank you.' out of noise counts.
UNKNOWN_LOGPROB = -0.6
# An endpoint that detects a language does not say how surely.
DETECTED_PROBABILITY = 0.9


class ResponseShape(Enum):
    """What an answer is asked to hold, the most first."""

    VERBOSE = "verbose"  # Whisper's figures for each segment, and the language
    LOGPROBS = "logprobs"  # the tokens' log probabilities: OpenAI's models after Whisper
    PLAIN = "plain"  # the text alone


_SHAPES = tuple(ResponseShape)
_ASKED: Mapping[ResponseShape, dict[str, Any]] = {
    ResponseShape.VERBOSE: {"response_format": "verbose_json"},
    ResponseShape.LOGPROBS: {"response_format": "json", "include": ["logprobs"]},
    ResponseShape.PLAIN: {"response_format": "json"},
}


class RemoteRecognizer:
    """One endpoint and one model (`voice.asr.port.Recognizer`).

    *Ownership*: an async context manager; it owns the HTTP connections. *Cancellation* hangs up the running call.
    Safe to use from many tasks at once.
    """

    def __init__(self, endpoint: Endpoint, *, calls_at_once: int = CALLS_AT_ONCE) -> None:
        self._endpoint = endpoint
        self._places = asyncio.Semaphore(calls_at_once)
        # OpenAI's later models refuse Whisper's figures: not asking them saves a call.
        self._shape = ResponseShape.LOGPROBS if endpoint.model.startswith("gpt-") else ResponseShape.VERBOSE
        # What is said now does not wait for a second try: the local model takes over.
        self._client = endpoint.open()

    async def __aenter__(self) -> Self:
        # The library imports its audio part when it is first touched: a second in which the loop would stand still.
        await asyncio.to_thread(lambda: self._client.audio.transcriptions)
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        await self._client.close()

    async def recognize(
        self,
        pcm: Pcm,
        *,
        language: str | None = None,
        glossary: tuple[str, ...] = (),
        speaker_id: int | None = None,
        interim: bool = False,
    ) -> Recognition:
        """See `Recognizer.recognize`. Every call is served side by side, so speakers need no order."""
        del speaker_id
        if interim and self._places.locked():
            raise RecogniserOverloadedError("The transcription endpoint is busy with finished speech.")
        heard = pcm[: int(LONGEST_S * LISTEN_RATE_HZ)]
        if duration_s(heard) < SHORTEST_S:
            return _recognition({"text": ""}, heard, language, compute_s=0.0)
        async with self._places:
            started = time.perf_counter()
            try:
                async with asyncio.timeout(self._endpoint.timeout_s):
                    body = await self._ask(heard, language, glossary)
            except RecogniserError:
                raise
            except Exception as error:
                raise translate_error(error, self._endpoint) from error
            compute_s = time.perf_counter() - started
        try:
            return _recognition(json.loads(body), heard, language, compute_s=compute_s)
        except (ValueError, TypeError, AttributeError) as error:
            raise self._unreadable() from error

    def confirm(self, speaker_id: int) -> None:
        """See `Recognizer.confirm`. A guess is asked at once or not at all, so none waits here."""

    async def _ask(self, pcm: Pcm, language: str | None, glossary: tuple[str, ...]) -> bytes:
        """Return the answer's body, in the richest shape that the endpoint takes."""
        asked: dict[str, Any] = {"file": ("speech.wav", _wav(pcm), "audio/wav"), "temperature": 0.0}
        if language is not None:
            asked["language"] = language
        if prompt := glossary_prompt(glossary):
            asked["prompt"] = prompt
        for shape in _SHAPES[_SHAPES.index(self._shape) :]:
            try:
                body = await self._fetch(asked | _ASKED[shape])
            except (openai.BadRequestError, openai.UnprocessableEntityError):
                # It may be the shape, or this request: the last shape's refusal is the request's.
                if shape is ResponseShape.PLAIN:
                    raise
                continue
            if shape is not self._shape:
                _log.info("transcription_shape_changed", shape=shape.value)
                self._shape = shape
            return body
        raise AssertionError("the last shape was answered or raised")

    async def _fetch(self, asked: Mapping[str, Any]) -> bytes:
        body = bytearray()
        async with self._client.audio.transcriptions.with_streaming_response.create(
            model=self._endpoint.model, **asked
        ) as response:
            async for piece in response.iter_bytes():
                body += piece
                if len(body) > MAX_ANSWER_BYTES:
                    raise self._unreadable()
        return bytes(body)

    def _unreadable(self) -> RecogniserError:
        return RecogniserError(
            f"{self._endpoint.where} sent something that is no transcription. Check that asr.base_url points at an "
            "OpenAI-compatible API (it mostly ends in /v1)."
        )


def _recognition(body: Any, pcm: Pcm, language: str | None, *, compute_s: float) -> Recognition:
    """Return what an answer says. Raises ValueError, TypeError or AttributeError for what is no answer."""
    text = body["text"] if isinstance(body, dict) and isinstance(body.get("text"), str) else None
    if text is None or len(text) > MAX_TEXT_CHARS:
        raise ValueError("no text")
    text = text.strip()
    segments = [each for each in body.get("segments") or () if isinstance(each, dict)]
    logprob = _weighted(segments, "avg_logprob")
    if logprob is None:
        logprob = _mean([each.get("logprob") for each in body.get("logprobs") or () if isinstance(each, dict)])
    return Recognition(
        text=text,
        language=language or language_code(str(body.get("language") or "")),
        mean_logprob=min(0.0, UNKNOWN_LOGPROB if logprob is None else logprob),
        compression_ratio=compression_ratio(text),
        no_speech_probability=min(1.0, max(0.0, _weighted(segments, "no_speech_prob") or 0.0)),
        duration_s=duration_s(pcm),
        compute_s=compute_s,
        language_probability=1.0 if language else DETECTED_PROBABILITY,
    )


def _weighted(segments: Sequence[Mapping[str, Any]], figure: str) -> float | None:
    """Return a figure's mean over all segments, by the length of their text; None where nobody tells it."""
    weighted = [(_number(each.get(figure)), len(str(each.get("text") or "")) + 1) for each in segments]
    known = [(value, weight) for value, weight in weighted if value is not None]
    return sum(value * weight for value, weight in known) / sum(weight for _, weight in known) if known else None


def _mean(values: Sequence[object]) -> float | None:
    known = [number for value in values if (number := _number(value)) is not None]
    return math.fsum(known) / len(known) if known else None


def _number(value: object) -> float | None:
    """Return a figure, or None for what an endpoint sends in its place."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value)


def _wav(pcm: Pcm) -> bytes:
    file = io.BytesIO()
    with wave.open(file, "wb") as writer:
        writer.setnchannels(1)
        writer.setsampwidth(2)
        writer.setframerate(LISTEN_RATE_HZ)
        writer.writeframes(pcm.astype("<i2").tobytes())
    return file.getvalue()


def translate_error(error: Exception, endpoint: Endpoint) -> RecogniserError:
    """Return `error` as a sentence with the remedy. Keys, sounds and texts never enter it."""
    return RecogniserError(f"The recogniser {endpoint.model} at {endpoint.where} {describe_failure(error, _REMEDIES)}.")
