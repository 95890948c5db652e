"""Discord's voice packets as bytes: RTP encrypted with `aead_xchacha20_poly1305_rtpsize`, and IP discovery.

The payload (DAVE frames or plain Opus) is not interpreted here.

Source: Discord's voice connection documentation. The layout is described in the transport package.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

import nacl.bindings
import nacl.exceptions

MODE = "aead_xchacha20_poly1305_rtpsize"
# RTP payload type 120 is Opus. All other packets on the socket (RTCP, video) are ignored.
PAYLOAD_TYPE_OPUS = 0x78
# 20 ms at the 48 kHz RTP clock.
TIMESTAMP_STEP = 960

_HEADER = struct.Struct(">BBHII")
_DISCOVERY = struct.Struct(">HHI64sH")
_DISCOVERY_REQUEST, _DISCOVERY_REPLY, _DISCOVERY_LENGTH = 1, 2, 70
_NONCE_BYTES = 24
_COUNTER_BYTES = 4
_TAG_BYTES = 16
_EXTENSION_BIT, _PADDING_BIT = 0x10, 0x20


@dataclass(frozen=True, slots=True)
class DecryptedPacket:
    """One packet after transport decryption. `payload` is the frame that the speaker's DAVE layer made."""

    ssrc: int
    sequence: int
    timestamp: int
    payload: bytes


class PacketEncryptor:
    """Encrypts the packets of one voice session, and counts the sequence number, timestamp and nonce."""

    __slots__ = ("_counter", "_key", "_sequence", "_ssrc", "_timestamp")

    def __init__(self, key: bytes, ssrc: int) -> None:
        """`key`: the 32 bytes that op 4 contains."""
        self._key = key
        self._ssrc = ssrc
        self._sequence = 0
        self._timestamp = 0
        self._counter = 0

    def seal(self, payload: bytes) -> bytes:
        """Return the datagram that carries `payload` as the next 20 ms of audio."""
        self._sequence = (self._sequence + 1) & 0xFFFF
        self._timestamp = (self._timestamp + TIMESTAMP_STEP) & 0xFFFFFFFF
        self._counter = (self._counter + 1) & 0xFFFFFFFF
        header = _HEADER.pack(0x80, PAYLOAD_TYPE_OPUS, self._sequence, self._timestamp, self._ssrc)
        counter = struct.pack("<I", self._counter)
        nonce = counter.ljust(_NONCE_BYTES, b"\0")
        sealed = nacl.bindings.crypto_aead_xchacha20poly1305_ietf_encrypt(payload, header, nonce, self._key)
        return header + sealed + counter

    def skip(self) -> None:
        """Advance the RTP clock by 20 ms without a packet."""
        self._timestamp = (self._timestamp + TIMESTAMP_STEP) & 0xFFFFFFFF


def decrypt_packet(datagram: bytes, key: bytes) -> DecryptedPacket | None:
    """Return the packet in a forwarded datagram, or None if the datagram is not an Opus packet for this key.

    The RTP padding is removed first. It is inside the ciphertext, behind the DAVE trailer, and the trailer is found
    from the end.
    """
    if len(datagram) < _HEADER.size + _TAG_BYTES + _COUNTER_BYTES or datagram[0] >> 6 != 2:
        return None
    flags, payload_type, sequence, timestamp, ssrc = _HEADER.unpack_from(datagram)
    if payload_type & 0x7F != PAYLOAD_TYPE_OPUS:
        return None
    head = _HEADER.size + 4 * (flags & 0x0F)
    extension_bytes = 0
    if flags & _EXTENSION_BIT:
        # The four bytes of the extension's preamble are authenticated with the header. The extension's body is
        # encrypted.
        extension_bytes = 4 * int.from_bytes(datagram[head + 2 : head + 4], "big")
        head += 4
    nonce = datagram[-_COUNTER_BYTES:].ljust(_NONCE_BYTES, b"\0")
    try:
        payload = nacl.bindings.crypto_aead_xchacha20poly1305_ietf_decrypt(
            datagram[head:-_COUNTER_BYTES], datagram[:head], nonce, key
        )
    except (nacl.exceptions.CryptoError, ValueError):
        return None
    if flags & _PADDING_BIT:
        padding = payload[-1] if payload else 0
        if not 0 < padding <= len(payload):
            return None
        payload = payload[:-padding]
    payload = payload[extension_bytes:]
    if not payload:
        return None
    return DecryptedPacket(ssrc, sequence, timestamp, payload)


def discovery_request(ssrc: int) -> bytes:
    """Return the datagram that asks the voice server for our address."""
    return _DISCOVERY.pack(_DISCOVERY_REQUEST, _DISCOVERY_LENGTH, ssrc, b"", 0)


def discovery_reply(datagram: bytes) -> tuple[str, int] | None:
    """Return the (address, port) of an IP discovery reply, or None if `datagram` is not such a reply."""
    if len(datagram) != _DISCOVERY.size:
        return None
    kind, length, _, address, port = _DISCOVERY.unpack(datagram)
    if kind != _DISCOVERY_REPLY or length != _DISCOVERY_LENGTH:
        return None
    return address.split(b"\0", 1)[0].decode("ascii", "replace"), port
