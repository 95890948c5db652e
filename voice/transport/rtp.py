"""Parses one UDP datagram of a voice connection into an audio packet's header, or a reason for rejection.

Pure parsing of RFC 3550 headers as Discord uses them; it does not identify speakers. No input raises. `PacketOpener`
takes the transport's encryption off.
"""

from __future__ import annotations

import struct
from enum import StrEnum
from typing import Any, NamedTuple

from nacl import _sodium, bindings

TAG_BYTES: int = bindings.crypto_aead_xchacha20poly1305_ietf_ABYTES
KEY_BYTES: int = bindings.crypto_aead_xchacha20poly1305_ietf_KEYBYTES
NONCE_BYTES: int = bindings.crypto_aead_xchacha20poly1305_ietf_NPUBBYTES

# A UDP datagram is never longer.
_LONGEST_BYTES = 65_536

_decrypt: Any = _sodium.lib.crypto_aead_xchacha20poly1305_ietf_decrypt
_NULL: Any = _sodium.ffi.NULL


class PacketOpener:
    """Decrypts packets with libsodium's XChaCha20-Poly1305, into a buffer that is used again. Not thread-safe.

    `nacl.bindings` makes two new buffers and six checks for each call, which together take three times as long as the
    decryption of a voice packet.
    """

    __slots__ = ("_out", "_view")

    def __init__(self) -> None:
        self._out: Any = _sodium.ffi.new("unsigned char[]", _LONGEST_BYTES)
        self._view: Any = _sodium.ffi.buffer(self._out)

    def open(self, sealed: bytes, authenticated: bytes, nonce: bytes, key: bytes) -> bytes | None:
        """Return the plain text of `sealed` (ciphertext and tag), or None if it was not made with this key and these
        authenticated bytes.
        """
        size = len(sealed) - TAG_BYTES
        # libsodium reads and writes whatever it is told, so the lengths are checked here.
        if not 0 <= size <= _LONGEST_BYTES or len(nonce) != NONCE_BYTES or len(key) != KEY_BYTES:
            return None
        failed = _decrypt(self._out, _NULL, _NULL, sealed, len(sealed), authenticated, len(authenticated), nonce, key)
        return None if failed else bytes(self._view[:size])


# RFC 3550, section 5.1.
_FIXED_HEADER_BYTES = 12
_FIXED_HEADER = struct.Struct(">BxHII")
_VERSION = 2
_PADDING_BIT = 0x20
_EXTENSION_BIT = 0x10
_CSRC_COUNT_MASK = 0x0F
# RFC 3550, section 5.3.1. In the `rtpsize` modes these four bytes are sent in the clear and authenticated,
# while the extension's body is encrypted with the payload.
_EXTENSION_PREAMBLE_BYTES = 4

# The payload type of Discord's clients for Opus (documented under "Sending Voice").
OPUS_PAYLOAD_TYPE = 0x78
# RFC 5761, section 4: these second bytes are RTCP when RTP and RTCP share a port.
_RTCP_TYPES = range(192, 224)

# `aead_xchacha20_poly1305_rtpsize`: a tag, and a 4-byte nonce at the very end.
NONCE_SUFFIX_BYTES = 4
_OVERHEAD_BYTES = TAG_BYTES + NONCE_SUFFIX_BYTES

# IP discovery: type 1 is the request, 2 the answer; each has 74 bytes.
DISCOVERY_BYTES = 74


class Rejection(StrEnum):
    """Why a datagram is not audio. Each value names the packet counter that it adds to."""

    FOREIGN = "foreign"  # not RTP version 2, or too short to be: discovery answers, keepalives, strangers
    RTCP = "rtcp"  # sender and receiver reports
    VIDEO = "video"  # another payload type: video, and retransmissions
    MALFORMED = "malformed"  # claims to be audio, but its lengths are inconsistent


# A tuple is made in a third of the time of a dataclass, and a hundred speakers need 5,000 a second.
class AudioPacket(NamedTuple):
    """An audio packet's header. The encrypted payload stays in the datagram.

    `header_bytes`: length of the unencrypted, authenticated part. `extension_bytes`: length of the header extension's
    body in the decrypted payload.
    """

    sequence: int
    timestamp: int
    ssrc: int
    header_bytes: int
    extension_bytes: int
    padded: bool


def is_discovery_answer(datagram: bytes) -> bool:
    """Return whether this is the voice server's answer to IP discovery."""
    return len(datagram) == DISCOVERY_BYTES and datagram[:2] == b"\x00\x02"


def parse(datagram: bytes) -> AudioPacket | Rejection:
    """Return the header of an audio packet, or the reason why `datagram` is not one."""
    size = len(datagram)
    if size < 2 or datagram[0] >> 6 != _VERSION:
        return Rejection.FOREIGN
    # RTCP's types are whole bytes, none of which is Opus with or without the marker bit. RTCP may be short.
    kind = datagram[1]
    if kind & 0x7F != OPUS_PAYLOAD_TYPE:
        return Rejection.RTCP if kind in _RTCP_TYPES else Rejection.VIDEO
    if size < _FIXED_HEADER_BYTES:
        return Rejection.MALFORMED
    first, sequence, timestamp, ssrc = _FIXED_HEADER.unpack_from(datagram)
    header = _FIXED_HEADER_BYTES + 4 * (first & _CSRC_COUNT_MASK)
    extension = 0
    if first & _EXTENSION_BIT:
        header += _EXTENSION_PREAMBLE_BYTES
        if size < header:
            return Rejection.MALFORMED
        # The preamble's last two bytes: the body's length in 32-bit words.
        extension = 4 * (datagram[header - 2] << 8 | datagram[header - 1])
    if size <= header + extension + _OVERHEAD_BYTES:
        return Rejection.MALFORMED
    return AudioPacket(sequence, timestamp, ssrc, header, extension, first & _PADDING_BIT != 0)


def frame_of(packet: AudioPacket, payload: bytes) -> bytes | None:
    """Return the media frame inside a transport-decrypted `payload`, or None if its lengths are wrong.

    The frame is empty if the packet is nothing but padding. Such packets come in bursts when somebody falls silent.
    RTP padding (RFC 3550, section 5.1: the last byte is its length) must be removed before DAVE looks for its trailer
    at the frame's end. Otherwise 3-15 % of all frames are lost.
    """
    end = len(payload)
    if packet.padded:
        padding = payload[-1] if payload else 0
        if not 0 < padding <= end:
            return None
        end -= padding
    if packet.extension_bytes > end or (packet.extension_bytes == end and not packet.padded):
        return None
    return payload[packet.extension_bytes : end]
