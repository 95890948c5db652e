"""A recogniser over HTTP: OpenAI's `/v1/audio/transcriptions`, also served by Speaches, vLLM and whisper.cpp.

It sets the deadline and requests as many figures as the endpoint can give (Whisper's own, token log probabilities, or
none). It turns the library's errors into one plain sentence each, without sound or text.
"""

from __future__ import annotations

import asyncio
import io
import json
import math
import time
import wave
from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import openai
import structlog

from voice.asr.glossary import glossary_prompt
from voice.asr.guards import compression_ratio
from voice.asr.language_names import language_code
from voice.asr.port import LONGEST_S, MAX_TEXT_CHARS, Recognition, RecognitionRequest, expected_language
from voice.audio import LISTEN_RATE_HZ, Pcm, duration_s
from voice.endpoint import Endpoint, Remedies, describe_failure
from voice.errors import (
    RecogniserError,
    RecogniserLateError,
    RecogniserOverloadedError,
    RecogniserUnreachableError,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import TracebackType


_log: Any = structlog.get_logger()

_REMEDIES = Remedies(section="asr", refused="asr.model, asr.languages")
_FAILED = "The recogniser {model} at {where} {why}."
# What people read of these sentences for the operator.
_NOT_RECOGNISED = "The service that turns speech into text does not answer at the moment."
# Maximum number of concurrent calls. More would be a backlog. Interims take half of the places, so that finished speech
# finds one.
CALLS_AT_ONCE = 8
# Seconds that the endpoint may take for one utterance; then the local model recognises it.
TIMEOUT_S = 6.0
MAX_ANSWER_BYTES = 1_000_000
# Assumed where the endpoint reports no probabilities: low enough for the guards to drop a hallucinated 'Thank you.'
UNKNOWN_LOGPROB = -0.6
# Assumed where the endpoint does not report how sure a detected language is.
DETECTED_PROBABILITY = 0.9
BUSY = "The transcription endpoint is busy with finished speech."


# The response formats to try, richest first.
_SHAPES: Sequence[tuple[str, dict[str, Any]]] = (
    # Whisper's figures for each segment, and the language.
    ("verbose", {"response_format": "verbose_json"}),
    # The tokens' log probabilities: OpenAI's models after Whisper.
    ("logprobs", {"response_format": "json", "include": ["logprobs"]}),
    # The text alone.
    ("plain", {"response_format": "json"}),
)


class RemoteRecogniser:
    """One endpoint and one model (`voice.asr.port.Recogniser`). Any number of tasks may call it.

    It cannot be told among which languages to detect one; another one that it detects is as good as none.
    `has_fallback`: there is a recogniser behind it, so an utterance that gets no place in time (`calls_at_once`) goes
    there. Without one it waits: late words are better than none.

    *Ownership*: an async context manager; it owns the HTTP connections. *Cancellation* aborts the running request.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        calls_at_once: int = CALLS_AT_ONCE,
        has_fallback: bool = False,
    ) -> None:
        self._endpoint = endpoint
        self._has_fallback = has_fallback
        self._places = asyncio.Semaphore(calls_at_once)
        self._interim_places = asyncio.Semaphore(calls_at_once // 2)
        # OpenAI's later models refuse Whisper's format, so skipping it saves a call.
        self._shapes = _SHAPES[1:] if endpoint.model.startswith("gpt-") else _SHAPES
        # The client does not retry: the local model takes over instead.
        self._client = endpoint.open()

    async def __aenter__(self) -> Self:
        # The library imports its audio part on first use, which would block the event loop for a second.
        await asyncio.to_thread(lambda: self._client.audio.transcriptions)
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        await self._client.close()

    async def recognise(self, request: RecognitionRequest) -> Recognition:
        """See `Recogniser.recognise`. All calls run concurrently, so speakers need no order here."""
        if request.careful:
            raise RecogniserOverloadedError("A transcription endpoint hears everything as well as it can.")
        known = expected_language(request.language)
        heard = request.pcm[: int(LONGEST_S * LISTEN_RATE_HZ)]
        if request.interim and (self._interim_places.locked() or self._places.locked()):
            raise RecogniserOverloadedError(BUSY)
        until = asyncio.get_running_loop().time() + self._endpoint.timeout_s if self._has_fallback else None
        try:
            async with (
                asyncio.timeout_at(until),
                self._interim_places if request.interim else nullcontext(),
                self._places,
            ):
                started = time.perf_counter()
                async with asyncio.timeout(self._endpoint.timeout_s):
                    body = await self._ask(heard, known, request.glossary)
        except RecogniserError:
            raise
        except Exception as error:
            if request.interim and isinstance(error, openai.RateLimitError):
                raise RecogniserOverloadedError(BUSY) from error
            raise translate_error(error, self._endpoint) from error
        compute_s = time.perf_counter() - started
        try:
            recognition = _recognition(json.loads(body), heard, known, compute_s=compute_s)
        # OverflowError: figures whose sum is beyond what a float holds.
        except (ValueError, TypeError, AttributeError, RecursionError, OverflowError) as error:
            raise self._unreadable() from error
        allowed = request.language
        if isinstance(allowed, tuple) and allowed and recognition.language not in allowed:
            return replace(recognition, language_probability=0.0)
        return recognition

    def confirm(self, speaker_id: int) -> None:
        """See `Recogniser.confirm`. Does nothing, because nothing waits here."""

    async def _ask(self, pcm: Pcm, language: str | None, glossary: tuple[str, ...]) -> bytes:
        """Return the response body, in the richest format that the endpoint supports."""
        asked: dict[str, Any] = {"file": ("speech.wav", _wav(pcm), "audio/wav"), "temperature": 0.0}
        if language is not None:
            asked["language"] = language
        if prompt := glossary_prompt(glossary):
            asked["prompt"] = prompt
        shapes = self._shapes
        while True:
            (name, shape), *poorer = shapes
            try:
                body = await self._fetch(asked | shape)
            except (openai.BadRequestError, openai.UnprocessableEntityError):
                # The endpoint refused the format or the request itself. With the last format, it refused the request.
                if not poorer:
                    raise
                shapes = poorer
                continue
            if len(shapes) < len(self._shapes):
                _log.info("transcription_shape_changed", shape=name)
                self._shapes = shapes
            return body

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
            "{where} sent something that is not a transcription. Check that asr.base_url points at an "
            "OpenAI-compatible API (it mostly ends in /v1).",
            where=self._endpoint.where,
        ).for_people(_NOT_RECOGNISED)


def _recognition(body: Any, pcm: Pcm, language: str | None, *, compute_s: float) -> Recognition:
    """Parse a response. Raises ValueError, TypeError, AttributeError or OverflowError if it is malformed."""
    text = body["text"] if isinstance(body, dict) and isinstance(body.get("text"), str) else None
    if text is None or len(text) > MAX_TEXT_CHARS:
        raise ValueError("no text")
    # JSON may have half a character, a lone surrogate, which can be neither measured nor sent on. The words count.
    text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").strip()
    segments = [each for each in body.get("segments") or () if isinstance(each, dict)]
    logprob = _weighted(segments, "avg_logprob")
    if logprob is None:
        logprob = _mean([each.get("logprob") for each in body.get("logprobs") or () if isinstance(each, dict)])
    # Only Roomtone's own recognisers tell it.
    told = _number(body.get("language_probability"))
    detected = DETECTED_PROBABILITY if told is None else min(1.0, max(0.0, told))
    return Recognition(
        text=text,
        language=language or language_code(str(body.get("language") or "")),
        mean_logprob=min(0.0, UNKNOWN_LOGPROB if logprob is None else logprob),
        compression_ratio=compression_ratio(text),
        no_speech_probability=min(1.0, max(0.0, _weighted(segments, "no_speech_prob") or 0.0)),
        duration_s=duration_s(pcm),
        compute_s=compute_s,
        language_probability=1.0 if language else detected,
    )


def _weighted(segments: Sequence[Mapping[str, Any]], figure: str) -> float | None:
    """Return the mean of `figure` over all segments, weighted by text length; None if no segment has it."""
    weighted = [(_number(each.get(figure)), len(str(each.get("text") or "")) + 1) for each in segments]
    known = [(value, weight) for value, weight in weighted if value is not None]
    return sum(value * weight for value, weight in known) / sum(weight for _, weight in known) if known else None


def _mean(values: Sequence[object]) -> float | None:
    known = [number for value in values if (number := _number(value)) is not None]
    return math.fsum(known) / len(known) if known else None


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:  # JSON's whole numbers may have hundreds of digits
        return None
    return number if math.isfinite(number) else None


def _wav(pcm: Pcm) -> bytes:
    file = io.BytesIO()
    with wave.open(file, "wb") as writer:
        writer.setnchannels(1)
        writer.setsampwidth(2)
        writer.setframerate(LISTEN_RATE_HZ)
        writer.writeframes(pcm.astype("<i2").tobytes())
    return file.getvalue()


def translate_error(error: Exception, endpoint: Endpoint) -> RecogniserError:
    """Describe `error` in a sentence with the remedy, without keys, sound or text. A busy endpoint is slow or refuses;
    it breaks no connection.
    """
    values = {"model": endpoint.model, "where": endpoint.where, "why": describe_failure(error, _REMEDIES)}
    match error:
        # The library's own time limit is one of its connection errors.
        case TimeoutError() | openai.APITimeoutError():
            return RecogniserLateError(_FAILED, **values).for_people(_NOT_RECOGNISED)
        case openai.APIConnectionError():
            return RecogniserUnreachableError(_FAILED, **values).for_people(_NOT_RECOGNISED)
        case _:
            return RecogniserError(_FAILED, **values).for_people(_NOT_RECOGNISED)
