"""A local server with OpenAI's `/v1/audio/transcriptions` API that can also misbehave on request.

The server has no recogniser: its owner passes a function that transcribes.
"""

from __future__ import annotations

import io
import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

import numpy as np
from aiohttp import BodyPartReader, web
from av.error import FFmpegError
from numpy.typing import NDArray

from rehearsal.people.clip import read_sound
from rehearsal.servers.loopback import LoopbackServer, error_response, refusal_response

MODEL = "local-transcription"
# The sample rate of the audio that the engine gets for every upload.
RATE_HZ = 16_000
# OpenAI's own limit on the size of an upload.
MAX_UPLOAD_BYTES = 25_000_000


@dataclass(frozen=True, slots=True)
class Transcription:
    """The engine's result, with Whisper's confidence values. `language`: a code such as `en`."""

    text: str
    language: str = "en"
    mean_logprob: float = -0.2
    compression_ratio: float = 1.0
    no_speech_probability: float = 0.0


@dataclass(frozen=True, slots=True)
class TranscriptionRequest:
    """One request. `pcm`: mono int16 at 16 kHz. `language` and `prompt` are empty if they were not given."""

    pcm: NDArray[np.int16]
    model: str
    language: str
    prompt: str
    response_format: str
    wants_logprobs: bool
    key: str


TranscriptionEngine: TypeAlias = "Callable[[TranscriptionRequest], Awaitable[Transcription]]"


class TranscriptionMode(StrEnum):
    """How the server behaves."""

    ANSWER = "answer"
    STALL = "stall"  # accepts the request and never answers
    CUT = "cut"  # the connection drops without an answer
    GARBAGE = "garbage"  # 200 with a web page
    WORDLESS = "wordless"  # a valid answer without its text
    WRONG_KEY = "wrong_key"
    UNKNOWN_MODEL = "unknown_model"
    RATE_LIMITED = "rate_limited"
    REFUSED = "refused"  # 400
    BROKEN = "broken"  # 500


@dataclass(slots=True)
class TranscriptionBehaviour:
    """How the server answers. The values may be changed while the server runs.

    `formats`: the accepted response formats; others get status 400. (OpenAI's newer models accept only `json`.)
    `language_names`: report languages by name (`english`), as OpenAI does, instead of by code.
    """

    engine: TranscriptionEngine
    mode: TranscriptionMode = TranscriptionMode.ANSWER
    formats: frozenset[str] = field(default_factory=lambda: frozenset({"json", "text", "verbose_json"}))
    language_names: dict[str, str] = field(default_factory=dict)


class LocalTranscriptionServer(LoopbackServer):
    """The transcription server. `calls` holds every request since the start."""

    def __init__(self, behaviour: TranscriptionBehaviour) -> None:
        super().__init__([web.post("/v1/audio/transcriptions", self._transcribe)])
        self.behaviour = behaviour
        self.calls: list[TranscriptionRequest] = []

    async def _transcribe(self, request: web.Request) -> web.Response:
        upload = await _read(request)
        if isinstance(upload, web.Response):
            return upload
        self.calls.append(upload)
        behaviour = self.behaviour
        if (refusal := refusal_response(behaviour.mode)) is not None:
            return refusal
        if upload.response_format not in behaviour.formats:
            return error_response(400, f"response_format '{upload.response_format}' is not compatible with this model.")
        match behaviour.mode:
            case TranscriptionMode.STALL:
                await self.stall()
            case TranscriptionMode.CUT:
                assert request.transport is not None
                request.transport.abort()
            case TranscriptionMode.GARBAGE:
                return web.Response(text="<html><body>It works!</body></html>", content_type="text/html")
            case TranscriptionMode.WORDLESS:
                return web.json_response({"usage": {"type": "duration", "seconds": 1}})
        return _answer(upload, await behaviour.engine(upload), behaviour)


async def _read(request: web.Request) -> TranscriptionRequest | web.Response:
    """Return the request in the multipart form, or the error response for a wrong form."""
    if request.content_length is not None and request.content_length > MAX_UPLOAD_BYTES:
        return error_response(413, f"Maximum content size limit ({MAX_UPLOAD_BYTES}) exceeded.")
    form: dict[str, str] = {}
    include: list[str] = []
    sound = b""
    async for part in await request.multipart():
        # The multipart form has no nested parts.
        if not isinstance(part, BodyPartReader):
            continue
        name, content = part.name or "", bytes(await part.read(decode=True))
        if name == "file":
            sound = content
        elif name == "include[]":
            include.append(content.decode("utf-8", "replace"))
        else:
            form[name] = content.decode("utf-8", "replace")
    if not form.get("model"):
        return error_response(400, "you must provide a model parameter")
    try:
        pcm = read_sound(io.BytesIO(sound), rate_hz=RATE_HZ)
    except (FFmpegError, ValueError, IndexError):
        return error_response(400, "The audio file could not be decoded or its format is not supported.")
    return TranscriptionRequest(
        pcm=pcm,
        model=form["model"],
        language=form.get("language", ""),
        prompt=form.get("prompt", ""),
        response_format=form.get("response_format", "json"),
        wants_logprobs="logprobs" in include,
        key=request.headers.get("Authorization", "").removeprefix("Bearer "),
    )


def _answer(upload: TranscriptionRequest, heard: Transcription, behaviour: TranscriptionBehaviour) -> web.Response:
    duration_s = round(len(upload.pcm) / RATE_HZ, 3)
    match upload.response_format:
        case "text":
            return web.Response(text=heard.text + "\n", content_type="text/plain")
        case "verbose_json":
            return web.json_response(_verbose(heard, duration_s, behaviour.language_names))
        case _:
            body: dict[str, object] = {
                "text": heard.text,
                "usage": {"type": "duration", "seconds": math.ceil(duration_s)},
            }
            if upload.wants_logprobs:
                body["logprobs"] = [
                    {"token": word, "logprob": heard.mean_logprob, "bytes": list(word.encode())}
                    for word in heard.text.split()
                ]
            return web.json_response(body)


def _verbose(heard: Transcription, duration_s: float, language_names: dict[str, str]) -> dict[str, object]:
    """Return the verbose answer. As with Whisper, silence has no segment."""
    segment = {
        "id": 0,
        "seek": 0,
        "start": 0.0,
        "end": duration_s,
        "text": heard.text,
        "tokens": [],
        "temperature": 0.0,
        "avg_logprob": heard.mean_logprob,
        "compression_ratio": heard.compression_ratio,
        "no_speech_prob": heard.no_speech_probability,
    }
    return {
        "task": "transcribe",
        "language": language_names.get(heard.language, heard.language),
        "duration": duration_s,
        "text": heard.text,
        "segments": [segment] if heard.text else [],
    }
