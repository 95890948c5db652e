"""A voice over HTTP: OpenAI's `/v1/audio/speech`, also served by Kokoro-FastAPI, Speaches and LocalAI.

This module sets the deadlines, passes sound on as it arrives, and turns the library's errors into one plain sentence
each. The spoken text never appears in a message. PCM is asked for (`response_format`), and every server with OpenAI's
interface has it. Some answer in WAV all the same, so the first bytes decide.
"""

from __future__ import annotations

import asyncio
import struct
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self, cast

import httpx2
import numpy as np

from voice.endpoint import Endpoint, Remedies, describe_failure
from voice.errors import EndpointFailureError, SynthesisError
from voice.plain_http import AnswerRefusedError
from voice.speaking.port import AudioChunk

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from types import TracebackType

    from voice.audio import Pcm

# A sentence takes seconds. A server that sends more than this is not a speech endpoint.
MAX_SOUND_S = 180.0
_QUOTED_CHARS = 120
# What people read of the sentences for the operator.
_NOT_SPOKEN = "The service that speaks for me does not answer at the moment."
_REMEDIES = Remedies(section="speaking", refused="speaking.model, speaking.voice_name")
# OpenAI: "pcm: raw samples in 24kHz (16-bit signed, low-endian), without the header". Other servers do the same.
PCM_RATE_HZ = 24_000
# The beginnings of files: WAV, and what must not be taken for samples. MPEG's are only two bytes, and quiet samples may
# begin with the same ones, so the content type tells them apart.
_WAV = b"RIFF"
_OTHER_FILES = (b"fLaC", b"ID3", b"OggS")
_MPEG = (b"\xff\xfb", b"\xff\xf3", b"\xff\xf2", b"\xff\xf1", b"\xff\xf9")
# Streaming servers put arbitrary lengths into the header, so only the lengths of chunks before the data are used.
_WAV_HEADER_BYTES = 12
_CHUNK = struct.Struct("<4sI")
_FORMAT = struct.Struct("<HHIIHH")
_PCM_FORMATS = (1, 0xFFFE)
# Resampled to Discord's rate, 65,535 samples at 8 Hz are 800 MB.
_LOWEST_RATE_HZ, _HIGHEST_RATE_HZ = 4_000, 192_000
_MOST_CHANNELS = 8
# If the header is longer than this, the file is not a WAV file.
_LONGEST_HEADER_BYTES = 65_536


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeechEndpoint(Endpoint):
    """Address, model and voice of an endpoint.

    `timeout_s`: the longest wait for a sentence's first sound. `stall_s`: the longest wait between two pieces of it.
    `behind_s`: how far the sound may fall behind a person who speaks the sentence without a pause.
    """

    voice: str
    speed: float = 1.0
    timeout_s: float = 8.0
    # Sound that has already arrived plays during a stall, so only a little of the stall is heard as a pause.
    stall_s: float = 2.0
    # A server that is slower than speech breaks each sentence up by pauses, which add up.
    behind_s: float = 4.0


class OpenAISynthesizer:
    """One endpoint and one voice (`voice.speaking.port.Synthesizer`).

    *Ownership*: an async context manager; it owns the HTTP connections. *Cancellation* aborts the running request. Any
    number of tasks may use it at once.
    """

    def __init__(self, endpoint: SpeechEndpoint) -> None:
        self._endpoint = endpoint
        # The client does not retry: another voice takes over instead.
        self._client = endpoint.open()

    async def __aenter__(self) -> Self:
        # The library imports its audio part on first use, which would block the event loop for a second.
        await asyncio.to_thread(lambda: self._client.audio.speech)
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        await self._client.close()

    async def stream(self, text: str) -> AsyncGenerator[AudioChunk, None]:
        """Yield the sound of `text` as the endpoint sends it. Raises `SynthesisError`."""
        endpoint = self._endpoint
        now = asyncio.get_running_loop().time
        sounds, next_by, behind_at = False, now() + endpoint.timeout_s, 0.0
        try:
            async with aclosing(self._sounds(text)) as stream:
                while True:
                    async with asyncio.timeout_at(next_by):
                        sound = await anext(stream, None)
                    if sound is None:
                        break
                    behind_at = (behind_at if sounds else now() + endpoint.behind_s) + sound.duration_s
                    sounds = True
                    yield sound
                    next_by = min(now() + endpoint.stall_s, behind_at)
        except SynthesisError:
            raise
        except TimeoutError as error:
            if not sounds:
                raise translate_error(error, endpoint) from error
            raise SynthesisError(
                "The voice {model} at {where} fell silent in the middle of a sentence. Look at its server's log, or "
                "take another voice.",
                model=endpoint.model,
                where=endpoint.where,
            ).for_people(_NOT_SPOKEN) from error
        except Exception as error:
            raise translate_error(error, endpoint) from error
        if not sounds and any(letter.isalnum() for letter in text):
            raise SynthesisError(
                "The voice {voice} at {where} sent no sound. Try another voice.",
                voice=endpoint.voice,
                where=endpoint.where,
            ).for_people(_NOT_SPOKEN)

    async def _sounds(self, text: str) -> AsyncGenerator[AudioChunk, None]:
        """Send the request and yield the decoded sound."""
        endpoint = self._endpoint
        async with self._client.audio.speech.with_streaming_response.create(
            # JSON cannot carry lone surrogates.
            input=text.encode("utf-8", "replace").decode("utf-8"),
            model=endpoint.model,
            voice=cast("Any", endpoint.voice),
            # It starts soonest.
            response_format="pcm",
            speed=endpoint.speed,
        ) as response:
            content_type = response.headers.get("content-type", "")
            body = SpeechAudioDecoder(content_type, most_s=MAX_SOUND_S)
            try:
                async for piece in response.iter_bytes():
                    for sound in body.feed(piece):
                        yield sound
                for sound in body.end():
                    yield sound
            except UndecodableAudioError as error:
                raise SynthesisError(
                    "{where} sent {kind}, which is no PCM or WAV sound, or more than a sentence has. Check that "
                    "speaking.base_url points at an OpenAI-compatible API (it mostly ends in /v1).",
                    where=endpoint.where,
                    kind=content_type.partition(";")[0].strip().lower()[:_QUOTED_CHARS] or "?",
                ).for_people(_NOT_SPOKEN) from error


class UndecodableAudioError(ValueError):
    """The bytes are neither PCM nor WAV with 16 bits, or more of it than a sentence can have."""


class SpeechAudioDecoder:
    """Reads a response body while it arrives. `content_type`: the HTTP header. `most_s`: the most seconds of sound."""

    def __init__(self, content_type: str, *, most_s: float) -> None:
        self._kind = content_type.partition(";")[0].strip().lower()
        self._rate_hz = sample_rate_of(content_type)
        self._channels = 1
        self._bytes = bytearray()
        self._in_samples = False
        self._left_s = most_s

    def feed(self, piece: bytes) -> list[AudioChunk]:
        """Add bytes, and return the sound that is complete. Raises `UndecodableAudioError`."""
        self._bytes += piece
        if not self._in_samples and len(self._bytes) >= len(_WAV):
            self._in_samples = self._begins()
        return self._samples() if self._in_samples else []

    def end(self) -> list[AudioChunk]:
        """Finish the body, and return the remaining sound. Raises as `feed` does."""
        if not self._in_samples and self._bytes and not self._begins():
            raise UndecodableAudioError
        return self._samples()

    def _begins(self) -> bool:
        """Return whether samples follow, without the header before them, which is complete then."""
        is_declared = "pcm" in self._kind or "l16" in self._kind
        is_text = self._kind.startswith("text/") or "json" in self._kind or "html" in self._kind
        if self._bytes.startswith(_OTHER_FILES) or is_text or (self._bytes.startswith(_MPEG) and not is_declared):
            raise UndecodableAudioError
        if not self._bytes.startswith(_WAV):
            return True
        at = _WAV_HEADER_BYTES
        while len(self._bytes) >= at + _CHUNK.size:
            name, length = _CHUNK.unpack_from(self._bytes, at)
            at += _CHUNK.size
            if name == b"data":
                del self._bytes[:at]
                return True
            if at + length > _LONGEST_HEADER_BYTES:
                raise UndecodableAudioError
            if name == b"fmt " and len(self._bytes) >= at + _FORMAT.size:
                form, self._channels, self._rate_hz, _, _, bits = _FORMAT.unpack_from(self._bytes, at)
                is_usual = _is_usual(self._rate_hz) and 1 <= self._channels <= _MOST_CHANNELS
                if form not in _PCM_FORMATS or bits != 16 or not is_usual:
                    raise UndecodableAudioError
            at += length + length % 2
        return False

    def _samples(self) -> list[AudioChunk]:
        frame_bytes = 2 * self._channels
        whole = len(self._bytes) // frame_bytes * frame_bytes
        if not whole:
            return []
        pcm: Pcm = np.frombuffer(bytes(self._bytes[:whole]), dtype="<i2").astype(np.int16)
        del self._bytes[:whole]
        if self._channels > 1:
            pcm = np.rint(pcm.reshape(-1, self._channels).mean(axis=1)).astype(np.int16)
        sound = AudioChunk(pcm, self._rate_hz)
        self._left_s -= sound.duration_s
        if self._left_s < 0:
            raise UndecodableAudioError
        return [sound]


def sample_rate_of(content_type: str) -> int:
    """Return the sample rate in a header such as `audio/pcm; rate=22050`, or OpenAI's rate."""
    for parameter in content_type.split(";")[1:]:
        name, _, value = parameter.partition("=")
        if name.strip().lower() == "rate" and value.strip().isdigit() and _is_usual(int(value)):
            return int(value)
    return PCM_RATE_HZ


def _is_usual(rate_hz: int) -> bool:
    return _LOWEST_RATE_HZ <= rate_hz <= _HIGHEST_RATE_HZ


def translate_error(error: Exception, endpoint: SpeechEndpoint) -> SynthesisError:
    """Describe `error` in a sentence with the remedy, without keys or the spoken text."""
    why = describe_failure(error, _REMEDIES)
    # An unreachable server raises the library's own error, so this is a stream that broke off.
    if isinstance(error, httpx2.HTTPError) and not isinstance(error, httpx2.TimeoutException | AnswerRefusedError):
        why = EndpointFailureError("broke off in the middle of a sentence. Try again, or look at its server's log")
    described = SynthesisError(
        "The voice {model} at {where} {why}.", model=endpoint.model, where=endpoint.where, why=why
    )
    return described.for_people(_NOT_SPOKEN)
