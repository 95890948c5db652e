"""A person's voice packets: RTP encrypted with `aead_xchacha20_poly1305_rtpsize`, and IP discovery.

The payload (DAVE frames or plain Opus) is not interpreted here.

Source: Discord's voice connection documentation.
"""

from __future__ import annotations

import struct

from rehearsal.discord.media.packet_encryption import (
    XCHACHA_MODE,
    RtpPacket,
    decrypt_packet,
    encrypt_packet,
    packet_cipher,
)

MODE = XCHACHA_MODE
# RTP payload type 120 is Opus. All other packets on the socket (RTCP, video) are ignored.
PAYLOAD_TYPE_OPUS = 0x78
# 20 ms at the 48 kHz RTP clock.
TIMESTAMP_STEP = 960

_DISCOVERY = struct.Struct(">HHI64sH")
_DISCOVERY_REQUEST, _DISCOVERY_REPLY, _DISCOVERY_LENGTH = 1, 2, 70


class PacketCodec:
    """Encrypts and decrypts the packets of one voice session, and counts the sequence number, timestamp and nonce."""

    def __init__(self, key: bytes, ssrc: int) -> None:
        """`key`: the 32 bytes that op 4 contains."""
        self._cipher = packet_cipher(MODE, key)
        self._ssrc = ssrc
        self._sequence = 0
        self._timestamp = 0

    def seal(self, payload: bytes) -> bytes:
        """Return the datagram that carries `payload` as the next 20 ms of audio."""
        self._sequence += 1
        self.skip()
        packet = RtpPacket(PAYLOAD_TYPE_OPUS, self._sequence & 0xFFFF, self._timestamp, self._ssrc, payload)
        return encrypt_packet(packet, self._cipher, self._sequence)

    def skip(self) -> None:
        """Advance the RTP clock by 20 ms without a packet."""
        self._timestamp = (self._timestamp + TIMESTAMP_STEP) & 0xFFFFFFFF

    def open(self, datagram: bytes) -> RtpPacket | None:
        """Return the packet in a forwarded datagram, or None if it is not an Opus packet for this session."""
        packet = decrypt_packet(datagram, self._cipher)
        return packet if packet is not None and packet.payload_type == PAYLOAD_TYPE_OPUS and packet.payload else None


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
