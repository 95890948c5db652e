"""Faults in what one member receives of the others' sound: bursts of padding, and frames in the clear.

Both were reported of the real Discord by other libraries. A fault lasts until it is set to nothing, across reconnects.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from voice.transport.opus import SILENCE_FRAME, Encoder

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

    from rehearsal.discord.media.packet_encryption import RtpPacket

# RFC 3550, section 5.1: the padding's length is one byte.
_PADDING_BYTES = 255
# An Opus frame of one byte is a header without sound.
_TINY_FRAME = b"\xf8"
_BEEP_HERTZ = 3000.0


@dataclass(frozen=True, slots=True)
class PaddingBursts:
    """`count` padded packets at once when somebody falls silent: `empty` of them (0-1) are nothing but padding, and the
    others are silence.
    """

    count: int
    empty: float


@dataclass(frozen=True, slots=True)
class ClearFrames:
    """`share` of the packets (0-1) have a frame in the clear instead of the encrypted one: a beep, or in `tiny` of them
    (0-1) one byte.
    """

    share: float
    tiny: float


@dataclass(frozen=True, slots=True)
class TreatedPacket:
    """A packet to send. `padding_bytes`: 0 leaves it to the network."""

    packet: RtpPacket
    padding_bytes: int = 0


@dataclass(slots=True)
class _Stream:
    """One speaker's packets to one receiver. `shift`: how many numbers padding has used up."""

    shift: int = 0
    silent: bool = True


@dataclass(slots=True)
class StreamFaults:
    """The faults of all receivers. `chance` decides which packets are affected."""

    chance: random.Random
    bursts: dict[int, PaddingBursts] = field(default_factory=dict)  # by the receiver's user id
    clear: dict[int, ClearFrames] = field(default_factory=dict)
    _streams: dict[tuple[int, int], _Stream] = field(default_factory=dict)

    def apply(self, packet: RtpPacket, *, user_id: int, receiver_ssrc: int) -> Iterator[TreatedPacket]:
        """Yield what is sent instead of `packet`. Nothing if it is lost."""
        bursts, clear = self.bursts.get(user_id), self.clear.get(user_id)
        stream = self._streams.get((receiver_ssrc, packet.ssrc))
        if bursts is None and clear is None and stream is None:
            yield TreatedPacket(packet)
            return
        if stream is None:
            stream = self._streams[receiver_ssrc, packet.ssrc] = _Stream()
        silence = packet.payload == SILENCE_FRAME
        if clear is not None and not silence and self.chance.random() < clear.share:
            packet = replace(packet, payload=_TINY_FRAME if self.chance.random() < clear.tiny else beep())
        yield TreatedPacket(replace(packet, sequence=(packet.sequence + stream.shift) & 0xFFFF))
        falls_silent, stream.silent = silence and not stream.silent, silence
        if bursts is None or not falls_silent:
            return
        for _ in range(bursts.count):
            stream.shift += 1
            payload = b"" if self.chance.random() < bursts.empty else SILENCE_FRAME
            padded = replace(packet, sequence=(packet.sequence + stream.shift) & 0xFFFF, payload=payload)
            yield TreatedPacket(padded, padding_bytes=_PADDING_BYTES)

    def forget(self, ssrc: int) -> None:
        """Forget the streams of a session that has ended."""
        for pair in [pair for pair in self._streams if ssrc in pair]:
            del self._streams[pair]


@functools.cache
def beep() -> bytes:
    """Return one Opus frame of a loud tone, which nobody said."""
    times = np.arange(960) / 48_000
    return Encoder().encode((20_000 * np.sin(2 * np.pi * _BEEP_HERTZ * times)).astype(np.int16))
