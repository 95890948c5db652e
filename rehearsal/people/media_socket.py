"""A person's voice packets and the UDP socket for them: RTP encrypted with `aead_xchacha20_poly1305_rtpsize`, and IP
discovery.

The payload (DAVE frames or plain Opus) is not interpreted here. Source: Discord's voice connection documentation.
"""

from __future__ import annotations

import asyncio
import contextlib
import struct
import time
from collections.abc import Callable
from typing import Any, Self

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


# A request that gets no answer is sent again after this time. The caller limits the whole time.
_DISCOVERY_RESEND_S = 0.3


class MediaSocket(asyncio.DatagramProtocol):
    """Passes each datagram on with its arrival time. `open` creates it; the owner must close it.

    *Cancellation*: `discover` can be cancelled. The socket stays usable.
    """

    def __init__(self, on_datagram: Callable[[bytes, float], None]) -> None:
        self._on_datagram = on_datagram
        self._discovered: asyncio.Future[tuple[str, int]] = asyncio.get_running_loop().create_future()
        self._transport: asyncio.DatagramTransport | None = None

    @classmethod
    async def open(cls, server: tuple[str, int], on_datagram: Callable[[bytes, float], None]) -> Self:
        """Return a socket that exchanges datagrams only with `server`. Raises `OSError`."""
        loop = asyncio.get_running_loop()
        # The transport is not stored in connection_made: up to Python 3.11 the transport passed there is not of the
        # type DatagramTransport.
        transport, media = await loop.create_datagram_endpoint(lambda: cls(on_datagram), remote_addr=server)
        media._transport = transport
        return media

    async def discover(self, ssrc: int) -> tuple[str, int]:
        """Return our address as the server sees it. The request is repeated until the server answers."""
        while True:
            self.send(discovery_request(ssrc))
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_DISCOVERY_RESEND_S):
                    return await asyncio.shield(self._discovered)

    def send(self, datagram: bytes) -> bool:
        """Send a datagram. Return False when the socket is closed."""
        if self._transport is None or self._transport.is_closing():
            return False
        self._transport.sendto(datagram)
        return True

    def close(self) -> None:
        """Close the socket. Further calls do nothing."""
        if self._transport is not None:
            self._transport.close()

    # ---- asyncio.DatagramProtocol ----

    def datagram_received(self, data: bytes, addr: tuple[str | Any, int]) -> None:
        """Pass on one datagram, except the answer to our IP discovery."""
        if not self._discovered.done() and (reply := discovery_reply(data)) is not None:
            self._discovered.set_result(reply)
            return
        self._on_datagram(data, time.monotonic())

    def error_received(self, exc: Exception) -> None:
        """Ignore ICMP errors. A server that restarts also closes the websocket, which is noticed elsewhere."""
