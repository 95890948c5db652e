"""Reads the sound of an Ogg Opus file (RFC 3533 and RFC 7845), as Discord's voice messages are. Pure.

libopus alone decodes what it reads, as it does every voice packet: nothing guesses what else a file might be.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import numpy as np

from voice.audio import DISCORD_RATE_HZ, LISTEN_RATE_HZ, NO_SOUND, Pcm
from voice.transport.opus import Decoder, OpusError

if TYPE_CHECKING:
    from collections.abc import Iterator


# RFC 3533, section 6: what a page begins with, up to the number of its segments.
_PAGE = struct.Struct("<4sBBqIIIB")
# A segment of this length goes on in the next one.
_WHOLE_SEGMENT = 255
# RFC 6716, section 3.4: 48 frames of 1275 bytes.
_MOST_PACKET_BYTES = 48 * 1275
_DISCORD_FRAME = LISTEN_RATE_HZ * 20 // 1000
# RFC 7845, section 5.1: a head as far as it says how much to skip, and its mapping family.
_HEAD = struct.Struct("<8sBBHIhB")


def decode_ogg_opus(content: bytes, *, most_s: float) -> Pcm | None:
    """Return the sound of a file, mono at 16 kHz, and not much more than `most_s` of it. None: it is no Ogg Opus file
    of one voice stream. A packet that is damaged is left out, and takes up the time of one of Discord's, so that a file
    of nothing else ends too. Takes a processor a thousandth of the sound's time.
    """
    packets = _packets(content)
    head = next(packets, b"")
    if len(head) < _HEAD.size:
        return None
    magic, _, channels, skipped, _, _, mapping = _HEAD.unpack_from(head)
    if magic != b"OpusHead" or channels not in (1, 2) or mapping:
        return None
    # The tags.
    next(packets, b"")
    decoder, pieces, heard, most = Decoder(), [NO_SOUND], 0, round(most_s * LISTEN_RATE_HZ)
    for packet in packets:
        try:
            pieces.append(decoder.decode(packet))
        except OpusError:
            heard += _DISCORD_FRAME
        else:
            heard += len(pieces[-1])
        if heard > most:
            break
    return np.concatenate(pieces)[skipped * LISTEN_RATE_HZ // DISCORD_RATE_HZ :]


def _packets(content: bytes) -> Iterator[bytes]:
    """Yield the packets of the first stream, as far as its pages are whole and its packets can be Opus."""
    at, stream, begun = 0, None, bytearray()
    while len(content) - at >= _PAGE.size:
        magic, version, _, _, serial, _, _, count = _PAGE.unpack_from(content, at)
        at += _PAGE.size
        if magic != b"OggS" or version or len(content) - at < count:
            return
        lengths = content[at : at + count]
        at += count
        if stream is None:
            stream = serial
        if serial != stream:
            at += sum(lengths)
            continue
        for length in lengths:
            begun += content[at : at + length]
            at += length
            if length < _WHOLE_SEGMENT:
                yield bytes(begun)
                begun.clear()
        if len(begun) > _MOST_PACKET_BYTES:
            return
