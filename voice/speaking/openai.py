"""The voice of an endpoint that speaks OpenAI's `/v1/audio/speech`: OpenAI itself, Kokoro-FastAPI, Speaches, LocalAI …

It sets the deadlines, reads whatever sound comes (bare PCM, WAV, Ogg/Opus, others), and turns each of the library's
errors into one plain sentence. What is said never enters a message.
"""

from __future__ import annotations

import asyncio
import io
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self, cast

import httpx
import numpy as np
import openai
from av import AudioResampler
from av import open as open_container
from av.error import FFmpegError

from voice.audio import DISCORD_RATE_HZ
from voice.errors import SynthesisError
from voice.speaking.port import Speech

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Literal

    from voice.audio import Pcm

OPENAI_URL = "https://api.openai.com/v1"
# OpenAI: "pcm: raw samples in 24kHz (16-bit signed, low-endian), without the header"; others do as OpenAI does.
PCM_RATE_HZ = 24_000
# A TCP connection that takes longer is a wrong address or a dead host.
CONNECT_TIMEOUT_S = 5.0
# Three minutes of 24 kHz PCM. A sentence is seconds; what sends more is no voice.
MAX_BYTES = 9_000_000
# Shorter is the click of an empty answer.
SHORTEST_S = 0.02
_CONTAINERS = (b"RIFF", b"OggS", b"fLaC", b"ID3", b"\xff\xfb", b"\xff\xf3", b"\xff\xf1", b"\xff\xf9")
_QUOTED_CHARS = 120


@dataclass(frozen=True, slots=True)
class SpeechEndpoint:
    """Which endpoint, model and voice. `base_url` empty is OpenAI itself; `timeout_s` is for one sentence."""

    base_url: str
    model: str
    voice: str
    api_key: str = ""
    speed: float = 1.0
    audio_format: Literal["pcm", "wav", "opus"] = "pcm"
    timeout_s: float = 8.0

    @property
    def where(self) -> str:
        """Return the address."""
        return self.base_url or OPENAI_URL


class OpenAISynthesizer:
    """One endpoint and one voice (`voice.speaking.port.Synthesizer`).

    *Ownership*: an async context manager; it owns the HTTP connections. *Cancellation* hangs up the running call.
    Safe to use from many tasks at once.
    """

    def __init__(self, endpoint: SpeechEndpoint) -> None:
        self._endpoint = endpoint
        self._client = openai.AsyncOpenAI(
            # The library insists on some key; servers without keys ignore it.
            api_key=endpoint.api_key or "none",
            base_url=endpoint.where,
            timeout=httpx.Timeout(endpoint.timeout_s, connect=CONNECT_TIMEOUT_S),
            # A reply does not wait for a second try: another voice takes over.
            max_retries=0,
        )

    async def __aenter__(self) -> Self:
        # The library imports its audio part when it is first touched: a second in which the loop would stand still.
        await asyncio.to_thread(lambda: self._client.audio.speech)
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        await self._client.close()

    async def synthesize(self, text: str) -> Speech:
        """Return `text` spoken. Raises `SynthesisError`."""
        endpoint = self._endpoint
        try:
            async with asyncio.timeout(endpoint.timeout_s):
                content_type, sound = await self._fetch(text)
        except SynthesisError:
            raise
        except Exception as error:
            raise translated(error, endpoint) from error
        pcm, rate_hz = self._read(content_type, sound)
        if len(pcm) < SHORTEST_S * rate_hz and any(letter.isalnum() for letter in text):
            raise SynthesisError(f"The voice {endpoint.voice} at {endpoint.where} sent no sound. Try another voice.")
        return Speech(text=text, pcm=pcm, rate_hz=rate_hz)

    async def _fetch(self, text: str) -> tuple[str, bytes]:
        """Return the answer's content type and the whole of its body."""
        endpoint = self._endpoint
        sound = bytearray()
        async with self._client.audio.speech.with_streaming_response.create(
            # No JSON holds a lone surrogate.
            input=text.encode("utf-8", "replace").decode("utf-8"),
            model=endpoint.model,
            voice=cast("Any", endpoint.voice),
            response_format=endpoint.audio_format,
            speed=endpoint.speed,
        ) as response:
            async for piece in response.iter_bytes():
                sound += piece
                if len(sound) > MAX_BYTES:
                    raise SynthesisError(f"{endpoint.where} sent sound without end. Check speaking.base_url.")
            return response.headers.get("content-type", ""), bytes(sound)

    def _read(self, content_type: str, sound: bytes) -> tuple[Pcm, int]:
        """Return the sound whatever it came in. Servers are free with what they send: the bytes tell."""
        kind = content_type.partition(";")[0].strip().lower()
        if not sound:
            return np.zeros(0, dtype=np.int16), PCM_RATE_HZ
        if sound.startswith(_CONTAINERS):
            try:
                return _decoded(sound), DISCORD_RATE_HZ
            except (FFmpegError, ValueError, IndexError) as error:
                raise self._unreadable(kind) from error
        if kind.startswith("text/") or "json" in kind or "html" in kind or self._endpoint.audio_format != "pcm":
            raise self._unreadable(kind)
        return np.frombuffer(sound[: len(sound) // 2 * 2], dtype="<i2").astype(np.int16), _rate_of(content_type)

    def _unreadable(self, kind: str) -> SynthesisError:
        return SynthesisError(
            f"{self._endpoint.where} sent {kind[:_QUOTED_CHARS] or 'something'} that is no sound. Check that "
            "speaking.base_url points at an OpenAI-compatible API (it mostly ends in /v1), and speaking.audio_format."
        )


def _decoded(sound: bytes) -> Pcm:
    """Return any container's sound as mono at Discord's rate. Raises FFmpeg's errors."""
    resampler = AudioResampler(format="s16", layout="mono", rate=DISCORD_RATE_HZ)
    with open_container(io.BytesIO(sound), mode="r") as container:
        frames = [part for frame in container.decode(audio=0) for part in resampler.resample(frame)]
    frames += resampler.resample(None) if frames else []
    if not frames:
        return np.zeros(0, dtype=np.int16)
    pcm: Pcm = np.concatenate([frame.to_ndarray().reshape(-1) for frame in frames]).astype(np.int16, copy=False)
    return pcm


def _rate_of(content_type: str) -> int:
    """Return the rate that `audio/pcm; rate=22050` tells, or what OpenAI's is."""
    for parameter in content_type.split(";")[1:]:
        name, _, value = parameter.partition("=")
        if name.strip().lower() == "rate" and value.strip().isdigit():
            rate_hz = int(value)
            return rate_hz if 4_000 <= rate_hz <= 192_000 else PCM_RATE_HZ
    return PCM_RATE_HZ


def translated(error: Exception, endpoint: SpeechEndpoint) -> SynthesisError:
    """Return `error` as a sentence with the remedy. Keys and texts never enter it."""
    match error:
        case openai.APITimeoutError() | TimeoutError() | httpx.TimeoutException():
            told = "did not speak in time. Check that it is running, or raise speaking.timeout_s"
        case openai.AuthenticationError() | openai.PermissionDeniedError():
            told = "refused the key. Set speaking.api_key to one that may use it"
        case openai.NotFoundError():
            told = "is not known there. Check speaking.model and speaking.base_url (it mostly ends in /v1)"
        case openai.RateLimitError():
            told = "is over its rate limit or quota. Wait a little, or look at the account"
        case openai.InternalServerError():
            told = f"failed inside (status {error.status_code}). Look at its server's log"
        case openai.APIStatusError():
            told = f"refused the request (status {error.status_code}). Check speaking.model and speaking.voice_name"
        case openai.APIConnectionError():
            told = "cannot be reached. Check speaking.base_url and that the server is running"
        case httpx.HTTPError():
            told = "broke off in the middle of a sentence. Try again, or look at its server's log"
        case _:
            told = "sent something that is no sound. Check speaking.base_url"
    return SynthesisError(f"The voice {endpoint.model} at {endpoint.where} {told}.")
