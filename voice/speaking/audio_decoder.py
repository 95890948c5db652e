"""Decodes the response of a speech endpoint while it arrives. Pure.

Servers do not always send the requested format, so the first bytes decide. Raw PCM, WAV and Ogg Opus are decoded while
they arrive. MP3, AAC, FLAC and other codecs in WAV are decoded by FFmpeg when they are complete.
"""

from __future__ import annotations

import io
import struct
from typing import TYPE_CHECKING

import numpy as np
from av import AudioResampler
from av import open as open_container
from av.error import FFmpegError

from voice.audio import DISCORD_RATE_HZ
from voice.speaking.ogg_opus import OggOpusDecoder
from voice.speaking.port import AudioChunk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from voice.audio import Pcm

# OpenAI: "pcm: raw samples in 24kHz (16-bit signed, low-endian), without the header". Other servers do the same.
PCM_RATE_HZ = 24_000
# Enough bytes to recognise any of the formats.
_MAGIC_BYTES = 4
_WHOLE_FILES = (b"fLaC", b"ID3")
# MPEG frames begin only with a sync word, and quiet PCM may begin with the same bytes.
_MPEG = (b"\xff\xfb", b"\xff\xf3", b"\xff\xf2", b"\xff\xf1", b"\xff\xf9")
# What a complete file may be for FFmpeg. Of other formats some name further files or addresses, which it would open:
# a session description (SDP) has it listen on a port of this machine for as long as it likes.
_FILE_FORMATS = "aac,flac,mp3,wav"
# Streaming servers put arbitrary lengths into the header, so only the lengths of chunks before the data are used.
_WAV_HEADER_BYTES = 12
_CHUNK_HEADER_BYTES = 8
# Resampled to Discord's rate, 65,535 samples at 8 Hz are 800 MB; a FLAC file of 55 bytes can hold them.
_LOWEST_RATE_HZ, _HIGHEST_RATE_HZ = 4_000, 192_000
_MOST_CHANNELS = 8
# If the header is longer than this, the file is not a WAV file.
_LONGEST_HEADER_BYTES = 65_536
_PCM_FORMATS = (1, 0xFFFE)


class UndecodableAudioError(ValueError):
    """The bytes cannot be decoded as audio."""


class EndlessAudioError(ValueError):
    """The bytes are more audio than a sentence can have. A few of them may stand for hours of silence."""


class SpeechAudioDecoder:
    """Decodes one response body. `content_type`: the HTTP header. `pcm_expected`: whether raw PCM was requested.
    `most_s`: the most seconds of sound.
    """

    def __init__(self, content_type: str, *, pcm_expected: bool, most_s: float) -> None:
        self._kind = content_type.partition(";")[0].strip().lower()
        self._rate_hz = sample_rate_of(content_type)
        self._pcm_expected = pcm_expected
        self._bytes = bytearray()
        self._channels = 1
        # None until the first bytes have been examined.
        self._format: str | None = None
        self._ogg = OggOpusDecoder()
        self._left_s = most_s

    def feed(self, piece: bytes) -> list[AudioChunk]:
        """Add bytes, and return the sound that is complete. Raises `UndecodableAudioError` and `EndlessAudioError`."""
        self._bytes += piece
        if self._format is None:
            if len(self._bytes) < _MAGIC_BYTES:
                return []
            self._format = self._detect_format()
        return self._decode()

    def end(self) -> list[AudioChunk]:
        """Finish the body, and return the remaining sound. Raises as `feed` does."""
        if self._format is None:
            if not self._bytes:
                return []
            self._format = self._detect_format()
        if self._format == "wav header" or (self._format == "ogg" and not self._bytes and not self._ogg.begun):
            raise UndecodableAudioError
        if self._format != "file":
            return self._decode()
        try:
            sounds = list(_decoded_file(bytes(self._bytes), self._left_s))
        except (EndlessAudioError, UndecodableAudioError):
            raise
        except (FFmpegError, ValueError, IndexError) as error:
            raise UndecodableAudioError from error
        return [AudioChunk(np.concatenate(sounds), DISCORD_RATE_HZ)] if sounds else []

    def _detect_format(self) -> str:
        start = bytes(self._bytes[:_MAGIC_BYTES])
        if start == b"OggS":
            return "ogg"
        if start == b"RIFF":
            return "wav header"
        pcm_declared = "pcm" in self._kind or "l16" in self._kind
        if start.startswith(_WHOLE_FILES) or (start.startswith(_MPEG) and not pcm_declared):
            return "file"
        if self._kind.startswith("text/") or "json" in self._kind or "html" in self._kind or not self._pcm_expected:
            raise UndecodableAudioError
        return "pcm"

    def _decode(self) -> list[AudioChunk]:
        if self._format == "wav header" and not self._read_wav_header():
            return []
        if self._format == "ogg":
            piece, self._bytes = bytes(self._bytes), bytearray()
            try:
                return [self._counted(pcm, DISCORD_RATE_HZ) for pcm in self._ogg.feed(piece)]
            except EndlessAudioError:
                raise
            except ValueError as error:
                raise UndecodableAudioError from error
        if self._format == "file":
            return []
        frame_bytes = 2 * self._channels
        whole = len(self._bytes) // frame_bytes * frame_bytes
        piece = bytes(self._bytes[:whole])
        del self._bytes[:whole]
        pcm = np.frombuffer(piece, dtype="<i2").astype(np.int16)
        if self._channels > 1 and len(pcm):
            pcm = np.rint(pcm.reshape(-1, self._channels).mean(axis=1)).astype(np.int16)
        return [self._counted(pcm, self._rate_hz)] if len(pcm) else []

    def _counted(self, pcm: Pcm, rate_hz: int) -> AudioChunk:
        """Return the next sound. Raises `EndlessAudioError` before there is too much of it."""
        sound = AudioChunk(pcm, rate_hz)
        self._left_s -= sound.duration_s
        if self._left_s < 0:
            raise EndlessAudioError
        return sound

    def _read_wav_header(self) -> bool:
        """Remove the header if it is complete. Return whether samples follow. Other codecs are decoded as a file."""
        at = _WAV_HEADER_BYTES
        while len(self._bytes) >= at + _CHUNK_HEADER_BYTES:
            name, length = struct.unpack_from("<4sI", self._bytes, at)
            body = at + _CHUNK_HEADER_BYTES
            if name == b"data":
                del self._bytes[:body]
                self._format = "pcm"
                return True
            if body + length > _LONGEST_HEADER_BYTES:
                raise UndecodableAudioError
            if name == b"fmt " and len(self._bytes) >= body + 16:
                form, channels, rate_hz, _, _, bits = struct.unpack_from("<HHIIHH", self._bytes, body)
                if form not in _PCM_FORMATS or bits != 16:
                    self._format = "file"
                    return False
                _require_usual(rate_hz, channels)
                self._channels, self._rate_hz = channels, rate_hz
            at = body + length + length % 2
        return False


def sample_rate_of(content_type: str) -> int:
    """Return the sample rate in a header such as `audio/pcm; rate=22050`, or OpenAI's rate."""
    for parameter in content_type.split(";")[1:]:
        name, _, value = parameter.partition("=")
        if name.strip().lower() == "rate" and value.strip().isdigit():
            rate_hz = int(value)
            return rate_hz if _LOWEST_RATE_HZ <= rate_hz <= _HIGHEST_RATE_HZ else PCM_RATE_HZ
    return PCM_RATE_HZ


def _require_usual(rate_hz: int, channels: int) -> None:
    """Raises `UndecodableAudioError` for sound as no voice has it."""
    if not (_LOWEST_RATE_HZ <= rate_hz <= _HIGHEST_RATE_HZ and 1 <= channels <= _MOST_CHANNELS):
        raise UndecodableAudioError


def _decoded_file(sound: bytes, most_s: float) -> Iterator[Pcm]:
    """Yield a file of one of `_FILE_FORMATS` as mono at Discord's sample rate. Raises `UndecodableAudioError`,
    `EndlessAudioError` and FFmpeg's errors, each before a frame is resampled.
    """
    resampler = AudioResampler(format="s16", layout="mono", rate=DISCORD_RATE_HZ)
    decoded_s = 0.0
    with open_container(io.BytesIO(sound), mode="r", options={"format_whitelist": _FILE_FORMATS}) as container:
        for frame in container.decode(audio=0):
            _require_usual(frame.sample_rate, frame.layout.nb_channels)
            decoded_s += frame.samples / frame.sample_rate
            if decoded_s > most_s:
                raise EndlessAudioError
            for part in resampler.resample(frame):
                yield part.to_ndarray().reshape(-1).astype(np.int16, copy=False)
    for part in resampler.resample(None) if decoded_s else ():
        yield part.to_ndarray().reshape(-1).astype(np.int16, copy=False)
