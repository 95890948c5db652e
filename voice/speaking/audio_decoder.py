"""Reads the response of a speech endpoint while it arrives: raw PCM, or a WAV file of it. Pure.

PCM is asked for (`response_format`), and every server with OpenAI's interface has it. Some answer in WAV all the same,
so the first bytes decide.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import numpy as np

from voice.speaking.port import AudioChunk

if TYPE_CHECKING:
    from voice.audio import Pcm

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


class UndecodableAudioError(ValueError):
    """The bytes are neither PCM nor WAV with 16 bits."""


class EndlessAudioError(ValueError):
    """The bytes are more audio than a sentence can have."""


class SpeechAudioDecoder:
    """Reads one response body. `content_type`: the HTTP header. `most_s`: the most seconds of sound."""

    def __init__(self, content_type: str, *, most_s: float) -> None:
        self._kind = content_type.partition(";")[0].strip().lower()
        self._rate_hz = sample_rate_of(content_type)
        self._channels = 1
        self._bytes = bytearray()
        self._in_samples = False
        self._left_s = most_s

    def feed(self, piece: bytes) -> list[AudioChunk]:
        """Add bytes, and return the sound that is complete. Raises `UndecodableAudioError` and `EndlessAudioError`."""
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
            raise EndlessAudioError
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
