"""Opus through libopus: a decoder to any rate that the listener needs, and an encoder.

The module finds libopus and translates its errors; it knows nothing of RTP or Discord. It does not use discord.py's
binding, whose decoder is slower (about 100 µs a frame; this one takes 27 µs) and cannot decode to 16 kHz mono, which
would require a resampler.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import functools
import importlib.util
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from voice.audio import DISCORD_RATE_HZ, FRAME_MS, LISTEN_RATE_HZ, Pcm
from voice.errors import OpusError as OpusError  # exported: rehearsal may import this module alone
from voice.errors import OpusMissingError

if TYPE_CHECKING:
    from collections.abc import Iterable


# Every Discord client sends this frame five times at the end of a talkspurt. It is never DAVE-encrypted.
SILENCE_FRAME = b"\xf8\xff\xfe"

# RFC 6716, section 2: an Opus packet lasts at most 120 ms.
_MAX_PACKET_MS = 120
# RFC 6716, section 3.2.1: one frame is at most 1275 bytes; a 20 ms packet holds one or two.
_MAX_PACKET_BYTES = 4000

# opus_defines.h
_OK = 0
# People and the bot speak alone; libopus mixes the two channels of a stereo packet.
_CHANNELS = 1
_APPLICATION_VOIP = 2048
_SET_BITRATE = 4002
_SET_COMPLEXITY = 4010
_SET_INBAND_FEC = 4012
_SET_PACKET_LOSS_PERC = 4014

_REMEDY = (
    "Install it (Debian and Ubuntu: `apt install libopus0`; macOS: `brew install opus`), "
    "or reinstall Roomtone's Python packages: the `av` wheel carries one."
)


def candidates() -> tuple[str, ...]:
    """Return possible paths of libopus, best first: the one in the PyAV wheel, then the system's.

    Distributions have older ones: Debian 12's 1.3.1 takes 36 µs to decode a frame, and 1.6.1 of the wheel 27 (CPU time,
    2 shared cores).
    """
    found: list[str] = []
    spec = importlib.util.find_spec("av")
    if spec is not None and spec.origin is not None:
        package = Path(spec.origin).parent
        for folder in (package.parent / "av.libs", package / ".dylibs"):
            found.extend(str(path) for path in sorted(folder.glob("libopus[-.]*")))
    found.extend(name for name in (ctypes.util.find_library("opus"),) if name)
    return tuple(found)


def open_library(names: Iterable[str]) -> ctypes.CDLL:
    """Load the first of `names` that is a working libopus. Raises `OpusMissingError` with the remedy."""
    refused: list[str] = []
    for name in names:
        try:
            lib = ctypes.CDLL(name)
            _declare(lib)
        except (OSError, AttributeError) as exc:
            refused.append(f"{name} ({exc})")
        else:
            return lib
    tried = f" Tried: {'; '.join(refused)}." if refused else ""
    raise OpusMissingError(f"libopus was not found, so nobody can be heard on {sys.platform}.{tried} {_REMEDY}")


@functools.cache
def library() -> ctypes.CDLL:
    """Return libopus, loaded on the first call. Raises `OpusMissingError`."""
    return open_library(candidates())


def version() -> str:
    """Return the library's version, such as `libopus 1.6.1`. Raises `OpusMissingError`."""
    text: bytes = library().opus_get_version_string()
    return text.decode("ascii", "replace")


def _one_frame_samples(configuration: int) -> int:
    """Return the duration of one frame in samples at 48 kHz (RFC 6716, section 3.1, table 2)."""
    if configuration < 12:
        return (480, 960, 1920, 2880)[configuration & 3]
    if configuration < 16:
        return (480, 960)[configuration & 1]
    return (120, 240, 480, 960)[configuration & 3]


# By the first byte of a packet that has one frame, as Discord's have.
_ONE_FRAME_SAMPLES = {first: _one_frame_samples(first >> 3) for first in range(256) if not first & 3}


def packet_samples(packet: bytes) -> int:
    """Return the duration of `packet` in samples per channel at 48 kHz. Raises `OpusError` if it is not Opus."""
    if packet and (known := _ONE_FRAME_SAMPLES.get(packet[0])):
        return known
    return _checked(library().opus_packet_get_nb_samples(packet, len(packet), DISCORD_RATE_HZ))


def carries_fec(packet: bytes) -> bool:
    """Return whether `packet` holds a low-rate copy of the previous frame (LBRR, RFC 6716, section 4.2.4).

    Does the same as `opus_packet_has_lbrr` of libopus 1.5, for packets of one frame, which Discord sends.
    """
    if len(packet) < 2:
        return False
    configuration, stereo, frames = packet[0] >> 3, packet[0] & 4, packet[0] & 3
    # Configurations from 16 on are CELT only, which has no copies.
    if configuration >= 16 or frames:
        return False
    # SILK packets of 40 and 60 ms hold two and three inner frames, each with a speech flag before the copy's flag.
    inner = (1, 1, 2, 3)[configuration & 3] if configuration < 12 else 1
    flagged = packet[1] >> (7 - inner) & 1
    return bool(flagged or (stereo and packet[1] >> (6 - 2 * inner) & 1))


class Decoder:
    """One stream's decoder. Not thread-safe; use one per SSRC, because Opus predicts from the previous frame.

    After an `OpusError` the decoder stays usable; the caller conceals the frame.
    """

    __slots__ = ("_buffer", "_decode", "_pcm", "_rate_hz", "_room", "_state")

    def __init__(self, *, rate_hz: int = LISTEN_RATE_HZ) -> None:
        """Create a decoder that returns int16 at `rate_hz`, of one channel."""
        lib = library()
        self._decode = lib.opus_decode
        self._rate_hz = rate_hz
        # libopus keeps its state in this buffer, so there is nothing to destroy.
        self._state = ctypes.create_string_buffer(lib.opus_decoder_get_size(_CHANNELS))
        _checked(lib.opus_decoder_init(self._state, rate_hz, _CHANNELS))
        self._room = rate_hz * _MAX_PACKET_MS // 1000
        self._buffer = np.empty(self._room, np.int16)
        self._pcm = self._buffer.ctypes.data_as(ctypes.c_void_p)

    def decode(self, packet: bytes) -> Pcm:
        """Decode one packet into a new array. Raises `OpusError`."""
        if not packet:
            # libopus would treat an empty packet as a lost one and invent sound.
            raise OpusError("An empty packet is not Opus.")
        return self._decoded(packet, len(packet), self._room, fec=False)

    def conceal(self, samples: int) -> Pcm:
        """Return `samples` (a multiple of 2.5 ms) of invented sound that continues the last frame (PLC)."""
        return self._run(None, samples, fec=False)

    def recover(self, next_packet: bytes, samples: int | None = None) -> Pcm:
        """Return the lost frame before `next_packet`, decoded from the low-rate copy in that packet (in-band FEC).

        `samples`: length of the lost frame; the default is one Discord frame (20 ms). If the packet carries no copy,
        libopus conceals instead. Raises `OpusError`.
        """
        return self._run(next_packet, samples or self._rate_hz * FRAME_MS // 1000, fec=True)

    def _run(self, packet: bytes | None, samples: int, *, fec: bool) -> Pcm:
        if not 0 < samples <= self._room:
            raise OpusError(f"{samples} samples are not 1 to {self._room}.")
        return self._decoded(packet, 0 if packet is None else len(packet), samples, fec=fec)

    def _decoded(self, packet: bytes | None, size: int, samples: int, *, fec: bool) -> Pcm:
        got = self._decode(self._state, packet, size, self._pcm, samples, fec)
        if got < _OK:
            _checked(got)
        return self._buffer[:got].copy()


class Encoder:
    """One stream's encoder for speech. Not thread-safe.

    Encoding is the expensive part of sending: 155 µs a mono frame at complexity 5, 305 at 10, FEC included (2 shared
    cores).
    """

    __slots__ = ("_lib", "_out", "_state")

    def __init__(
        self,
        *,
        rate_hz: int = DISCORD_RATE_HZ,
        bitrate_bps: int = 64_000,
        complexity: int = 5,
        expected_loss_percent: int = 10,
    ) -> None:
        """`complexity`: 0-10; 10 costs twice the CPU of 5, for a difference in speech that few people hear.
        `expected_loss_percent`: above 0 each packet carries a rough copy of the previous one (FEC); 0 saves a third of
        the CPU.
        """
        self._lib = library()
        self._state = ctypes.create_string_buffer(self._lib.opus_encoder_get_size(_CHANNELS))
        _checked(self._lib.opus_encoder_init(self._state, rate_hz, _CHANNELS, _APPLICATION_VOIP))
        self._out = ctypes.create_string_buffer(_MAX_PACKET_BYTES)
        self._set(_SET_BITRATE, bitrate_bps)
        self._set(_SET_COMPLEXITY, complexity)
        self._set(_SET_INBAND_FEC, int(expected_loss_percent > 0))
        self._set(_SET_PACKET_LOSS_PERC, expected_loss_percent)

    def encode(self, pcm: Pcm) -> bytes:
        """Return one packet. `pcm`: int16, 2.5 to 60 ms, of one channel. Raises `OpusError`."""
        samples = np.ascontiguousarray(pcm, np.int16)
        size = _checked(
            self._lib.opus_encode(
                self._state,
                samples.ctypes.data_as(ctypes.c_void_p),
                len(samples),
                self._out,
                _MAX_PACKET_BYTES,
            )
        )
        return ctypes.string_at(self._out, size)

    def _set(self, request: int, value: int) -> None:
        _checked(self._lib.opus_encoder_ctl(self._state, request, ctypes.c_int32(value)))


def _checked(result: int) -> int:
    if result < _OK:
        reason: bytes = library().opus_strerror(result)
        raise OpusError(f"libopus refused: {reason.decode('ascii', 'replace')}.")
    return result


def _declare(lib: ctypes.CDLL) -> None:
    """Declare to ctypes the functions we call (opus.h). An AttributeError means that `lib` is not libopus."""
    number, pointer = ctypes.c_int, ctypes.c_void_p
    lib.opus_get_version_string.restype = ctypes.c_char_p
    lib.opus_get_version_string.argtypes = []
    lib.opus_strerror.restype = ctypes.c_char_p
    lib.opus_strerror.argtypes = [number]
    for name, arguments in (
        ("opus_decoder_get_size", [number]),
        ("opus_decoder_init", [pointer, ctypes.c_int32, number]),
        # Called for every packet, and 0.3 µs cheaper without declared arguments. ctypes passes `Decoder`'s buffers as
        # pointers and its numbers as C's int.
        ("opus_decode", None),
        ("opus_encoder_get_size", [number]),
        ("opus_encoder_init", [pointer, ctypes.c_int32, number, number]),
        ("opus_encode", [pointer, pointer, number, pointer, ctypes.c_int32]),
        # Variadic in C: declare only the fixed arguments, as ctypes requires on arm64.
        ("opus_encoder_ctl", [pointer, number]),
        ("opus_packet_get_nb_samples", [ctypes.c_char_p, ctypes.c_int32, ctypes.c_int32]),
    ):
        function = getattr(lib, name)
        function.restype = number
        function.argtypes = arguments
