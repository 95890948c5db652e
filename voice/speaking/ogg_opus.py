"""Decodes an Ogg Opus stream packet by packet while it arrives (RFC 3533 for the pages, RFC 7845 for their content).

FFmpeg can read Ogg too, but it reads from a file, which would block a thread while waiting for the network.
"""

from __future__ import annotations

import struct
from collections import deque
from typing import TYPE_CHECKING

from voice.audio import DISCORD_RATE_HZ
from voice.errors import OpusError
from voice.transport.opus import Decoder

if TYPE_CHECKING:
    from collections.abc import Iterator

    from voice.audio import Pcm

_CAPTURE = b"OggS"
# RFC 3533, section 6: the fixed part of a page's header. Its last byte is the number of segments.
_HEADER_BYTES = 27
# After a segment of this length the packet continues in the next segment.
_FULL_SEGMENT = 255
# RFC 7845, section 5.1: the first packet. Bytes 10 and 11 hold the number of samples to skip.
_HEAD, _TAGS = b"OpusHead", b"OpusTags"
_HEAD_BYTES = 19
# Packets without sound: headers, empty and damaged ones. Megabytes of them would take the event loop many seconds.
_MOST_SILENT = 250


class OggOpusDecoder:
    """Decodes one stream to mono at 48 kHz. A damaged packet is skipped."""

    def __init__(self) -> None:
        self._bytes = bytearray()
        self._lengths: deque[int] = deque()
        self._packet = bytearray()
        self._decoder: Decoder | None = None
        self._skip = 0
        self._silent = 0

    @property
    def begun(self) -> bool:
        """Return whether the Opus header has arrived."""
        return self._decoder is not None

    def feed(self, piece: bytes) -> Iterator[Pcm]:
        """Add bytes, and yield the sound of the complete packets. Raises ValueError if the stream is not Ogg Opus."""
        self._bytes += piece
        for packet in self._packets():
            sound = self._decoded(packet)
            if sound is None:
                self._silent += 1
                if self._silent > _MOST_SILENT:
                    raise ValueError("too many packets without sound")
            elif len(sound):
                yield sound

    def _packets(self) -> Iterator[bytes]:
        while (segment := self._next_segment()) is not None:
            self._packet += segment
            if len(segment) < _FULL_SEGMENT:
                packet, self._packet = bytes(self._packet), bytearray()
                yield packet

    def _next_segment(self) -> bytes | None:
        """Remove the next segment from the buffer, or return None if it is incomplete.

        Segments are read before their page is complete, because a page may hold a second of sound.
        """
        while not self._lengths:
            if not self._begin_page():
                return None
        length = self._lengths[0]
        if len(self._bytes) < length:
            return None
        self._lengths.popleft()
        segment = bytes(self._bytes[:length])
        del self._bytes[:length]
        return segment

    def _begin_page(self) -> bool:
        """Remove a page's header from the buffer, and return whether it was complete."""
        if len(self._bytes) < _HEADER_BYTES:
            return False
        if not self._bytes.startswith(_CAPTURE):
            raise ValueError("no Ogg page where one must begin")
        end = _HEADER_BYTES + self._bytes[_HEADER_BYTES - 1]
        if len(self._bytes) < end:
            return False
        self._lengths.extend(self._bytes[_HEADER_BYTES:end])
        del self._bytes[:end]
        return True

    def _decoded(self, packet: bytes) -> Pcm | None:
        if packet.startswith(_HEAD):
            if len(packet) < _HEAD_BYTES:
                raise ValueError("a broken Opus header")
            # The Opus decoder mixes stereo down to mono.
            self._decoder = Decoder(rate_hz=DISCORD_RATE_HZ)
            (self._skip,) = struct.unpack_from("<H", packet, 10)
            return None
        if packet.startswith(_TAGS) or not packet:
            return None
        if self._decoder is None:
            raise ValueError("Ogg without an Opus header")
        try:
            sound = self._decoder.decode(packet)
        except OpusError:
            return None
        skipped = min(self._skip, len(sound))
        self._skip -= skipped
        return sound[skipped:]
