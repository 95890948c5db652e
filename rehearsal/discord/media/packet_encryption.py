"""The transport encryption of voice packets: the two AEAD modes that Discord's voice gateway offers.

In both modes the unencrypted part is the RTP header with its CSRCs and the first four bytes of a header extension. The
nonce is a 32-bit counter after the ciphertext ("rtpsize").
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import nacl.bindings
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from nacl.exceptions import CryptoError

AES_MODE = "aead_aes256_gcm_rtpsize"
XCHACHA_MODE = "aead_xchacha20_poly1305_rtpsize"
# The best mode comes first, as in Discord's list.
MODES = (AES_MODE, XCHACHA_MODE)

_NONCE_BYTES = 4
_TAG_BYTES = 16
_FIXED_HEADER_BYTES = 12
_PADDING_BIT, _EXTENSION_BIT, _CSRC_MASK = 0x20, 0x10, 0x0F
_VERSION_2 = 2
# RFC 8285, section 4.2: the profile of a header extension whose elements have one-byte headers.
ONE_BYTE_HEADERS = 0xBEDE


@dataclass(frozen=True, slots=True)
class RtpPacket:
    """A decrypted RTP packet: the header fields that are forwarded unchanged, and the payload."""

    marker_and_type: int
    sequence: int
    timestamp: int
    ssrc: int
    payload: bytes

    @property
    def payload_type(self) -> int:
        """The seven-bit payload type."""
        return self.marker_and_type & 0x7F


@dataclass(frozen=True, slots=True)
class PacketCipher:
    """The cipher of one session. `seal` and `open` are its library's, and get text, header and nonce."""

    nonce_bytes: int
    seal: Callable[[bytes, bytes, bytes], bytes]
    open: Callable[[bytes, bytes, bytes], bytes]

    def encrypt(self, plain: bytes, header: bytes, nonce: bytes) -> bytes:
        """Return ciphertext and tag."""
        return self.seal(plain, header, nonce.ljust(self.nonce_bytes, b"\0"))

    def decrypt(self, encrypted: bytes, header: bytes, nonce: bytes) -> bytes | None:
        """Return the plain text, or None if the tag is wrong."""
        try:
            return self.open(encrypted, header, nonce.ljust(self.nonce_bytes, b"\0"))
        except (InvalidTag, CryptoError):
            return None


def packet_cipher(mode: str, key: bytes) -> PacketCipher:
    """Return the cipher for one of `MODES`. `key` has 32 bytes."""
    if mode == AES_MODE:
        aead = AESGCM(key)
        return PacketCipher(
            12,
            lambda plain, header, nonce: aead.encrypt(nonce, plain, header),
            lambda encrypted, header, nonce: aead.decrypt(nonce, encrypted, header),
        )
    return PacketCipher(
        24,
        partial(nacl.bindings.crypto_aead_xchacha20poly1305_ietf_encrypt, key=key),
        partial(nacl.bindings.crypto_aead_xchacha20poly1305_ietf_decrypt, key=key),
    )


def decrypt_packet(datagram: bytes, key: PacketCipher) -> RtpPacket | None:
    """Return the packet in `datagram` without header extension and padding, or None if the packet is not authentic."""
    header_bytes = unencrypted_bytes(datagram)
    if header_bytes is None or len(datagram) < header_bytes + _TAG_BYTES + _NONCE_BYTES:
        return None
    header, nonce = datagram[:header_bytes], datagram[-_NONCE_BYTES:]
    plain = key.decrypt(datagram[header_bytes:-_NONCE_BYTES], header, nonce)
    if plain is None:
        return None
    if header[0] & _PADDING_BIT:
        padding = plain[-1] if plain else 0
        if not 0 < padding <= len(plain):
            return None
        plain = plain[:-padding]
    if header[0] & _EXTENSION_BIT:
        extension_bytes = 4 * int.from_bytes(header[-2:], "big")
        if extension_bytes > len(plain):
            return None
        plain = plain[extension_bytes:]
    _, marker_and_type, sequence, timestamp, ssrc = struct.unpack(">BBHII", header[:_FIXED_HEADER_BYTES])
    return RtpPacket(marker_and_type, sequence, timestamp, ssrc, plain)


def encrypt_packet(
    packet: RtpPacket,
    key: PacketCipher,
    counter: int,
    *,
    extension: bytes = b"",
    profile: int = ONE_BYTE_HEADERS,
    padding_bytes: int = 0,
) -> bytes:
    """Return the encrypted datagram.

    `extension`: the body of a header extension of this `profile`, a multiple of four bytes, or empty for no extension.
    """
    first = _VERSION_2 << 6
    preamble = b""
    if extension:
        first |= _EXTENSION_BIT
        preamble = struct.pack(">HH", profile, len(extension) // 4)
    plain = extension + packet.payload
    if padding_bytes:
        first |= _PADDING_BIT
        plain += bytes([padding_bytes]) * padding_bytes
    fields = (first, packet.marker_and_type, packet.sequence, packet.timestamp, packet.ssrc)
    header = struct.pack(">BBHII", *fields) + preamble
    nonce = struct.pack("<I", counter & 0xFFFF_FFFF)
    return header + key.encrypt(plain, header, nonce) + nonce


def unencrypted_bytes(datagram: bytes) -> int | None:
    """Return the size of the unencrypted header, or None if the datagram is not an RTP packet."""
    if len(datagram) < _FIXED_HEADER_BYTES or datagram[0] >> 6 != _VERSION_2:
        return None
    size = _FIXED_HEADER_BYTES + 4 * (datagram[0] & _CSRC_MASK)
    return size + 4 if datagram[0] & _EXTENSION_BIT else size
