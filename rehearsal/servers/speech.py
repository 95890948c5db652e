"""A local server with OpenAI's `/v1/audio/speech` API that can also misbehave on request.

The server has no voice: its owner passes a function that synthesizes speech.
"""

from __future__ import annotations

import asyncio
import io
import wave
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeAlias

import numpy as np
from aiohttp import web
from numpy.typing import NDArray

from rehearsal.servers.loopback import LoopbackServer, refusal_response

MODEL = "local-speech"
# The sample rate of OpenAI's raw PCM.
PCM_RATE_HZ = 24_000
# Audio is sent in pieces, as an engine that streams does.
PIECE_BYTES = 4_800

SpeechEngine: TypeAlias = "Callable[[str], Awaitable[tuple[NDArray[np.int16], int]]]"


class SpeechMode(StrEnum):
    """How the server behaves."""

    ANSWER = "answer"
    STALL = "stall"  # accepts the request and never answers
    STALL_AFTER_FIRST = "stall_after_first"  # some audio, then nothing
    CUT = "cut"  # some audio, then the connection drops
    EMPTY = "empty"  # a valid answer without audio
    GARBAGE = "garbage"  # 200 with a web page
    BROKEN_SOUND = "broken_sound"  # a container that cannot be read
    WRONG_KEY = "wrong_key"
    UNKNOWN_MODEL = "unknown_model"
    RATE_LIMITED = "rate_limited"
    REFUSED = "refused"  # 400
    BROKEN = "broken"  # 500


@dataclass(slots=True)
class SpeechBehaviour:
    """How the server answers. The values may be changed while the server runs.

    `sends`: if not empty, the format that is always sent. `pace`: how many seconds it takes to send one second of
    audio; 0 sends everything at once.
    """

    engine: SpeechEngine
    mode: SpeechMode = SpeechMode.ANSWER
    sends: str = ""
    pace: float = 0.0


@dataclass(frozen=True, slots=True)
class _Answer:
    """One synthesized text in the form in which it is sent. `duration_s`: the length of its audio."""

    content_type: str
    sound: bytes
    duration_s: float


class LocalSpeechServer(LoopbackServer):
    """The speech server. `calls` holds the body of every request since the start."""

    def __init__(self, behaviour: SpeechBehaviour) -> None:
        super().__init__([web.post("/v1/audio/speech", self._speak)])
        self.behaviour = behaviour
        self.calls: list[Mapping[str, Any]] = []

    async def _speak(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.calls.append(body)
        mode = self.behaviour.mode
        if (refusal := refusal_response(mode)) is not None:
            return refusal
        if mode is SpeechMode.STALL:
            await self.stall()
        if mode is SpeechMode.GARBAGE:
            return web.Response(text="<html><body>It works!</body></html>", content_type="text/html")
        if mode is SpeechMode.BROKEN_SOUND:
            return web.Response(body=b"OggS and then nothing of the kind", content_type="audio/ogg")
        answer = await self._answer(str(body.get("input", "")), str(body.get("response_format", "mp3")))
        return await self._stream(request, answer)

    async def _answer(self, text: str, wanted: str) -> _Answer:
        """Return the engine's audio. Other formats than pcm are sent as WAV, as some servers do."""
        if self.behaviour.mode is SpeechMode.EMPTY:
            return _Answer("audio/pcm", b"", 0.0)
        pcm, rate_hz = await self.behaviour.engine(text)
        duration_s = len(pcm) / rate_hz
        match self.behaviour.sends or wanted:
            case "pcm":
                return _Answer("audio/pcm", _at(pcm, rate_hz, PCM_RATE_HZ).astype("<i2").tobytes(), duration_s)
            case _:
                return _Answer("audio/wav", _wav(pcm, rate_hz), duration_s)

    async def _stream(self, request: web.Request, answer: _Answer) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": answer.content_type})
        await response.prepare(request)
        sound = answer.sound
        for start in range(0, len(sound), PIECE_BYTES):
            if self.behaviour.pace > 0:
                await asyncio.sleep(self.behaviour.pace * answer.duration_s * PIECE_BYTES / len(sound))
            await response.write(sound[start : start + PIECE_BYTES])
            if self.behaviour.mode is SpeechMode.STALL_AFTER_FIRST:
                await self.stall()
            elif self.behaviour.mode is SpeechMode.CUT:
                assert request.transport is not None
                request.transport.abort()
                break
        return response


def _at(pcm: NDArray[np.int16], from_hz: int, to_hz: int) -> NDArray[np.int16]:
    """Return the audio at another sample rate, by linear interpolation."""
    count = round(len(pcm) * to_hz / from_hz)
    times = np.arange(count) * from_hz / to_hz
    return np.rint(np.interp(times, np.arange(len(pcm)), pcm)).astype(np.int16) if len(pcm) else pcm


def _wav(pcm: NDArray[np.int16], rate_hz: int) -> bytes:
    file = io.BytesIO()
    with wave.open(file, "wb") as writer:
        writer.setnchannels(1)
        writer.setsampwidth(2)
        writer.setframerate(rate_hz)
        writer.writeframes(pcm.astype("<i2").tobytes())
    return file.getvalue()
