"""The selective forwarding unit (SFU): decrypts each UDP packet and encrypts it again for every receiver.

One socket serves all channels. The forwarder identifies speakers by SSRC and learns their addresses from IP discovery.
A seeded generator decides which packets are lost, padded or reordered (`NetworkConditions`), so a run can be repeated.
"""

from __future__ import annotations

import asyncio
import os
import random
import secrets
import socket
import struct
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Final, cast

from rehearsal.discord.media import packet_encryption
from rehearsal.errors import LocalDiscordError


@dataclass(slots=True)
class NetworkConditions:
    """Three shares of the packets, each from 0 to 1. A change applies from the next packet on.

    `loss`: packets dropped on the way to one receiver. `padding`: packets sent with RTP padding (the P bit). Even a
    good network pads some: Discord does too, and a client must strip it. `reorder`: packets sent after the next packet
    of the same speaker.
    """

    loss: float = 0.0
    padding: float = 0.05
    reorder: float = 0.0

    def update(self, shares: Mapping[str, object]) -> None:
        """Set the given shares. If one of them is wrong, set none and raise `LocalDiscordError`."""
        for name, share in shares.items():
            number = isinstance(share, int | float) and not isinstance(share, bool) and 0 <= share <= 1
            if name not in self.as_dict() or not number:
                known = ", ".join(self.as_dict())
                raise LocalDiscordError(f"The network has {known}, each from 0 to 1; not {name} = {share!r}.")
        for name, share in shares.items():
            setattr(self, name, share)

    def as_dict(self) -> dict[str, float]:
        """Return the shares by name."""
        return asdict(self)


@dataclass(slots=True)
class ForwarderCounters:
    """The forwarder's packet counts since it started."""

    received: int = 0
    forwarded: int = 0
    dropped: int = 0  # by the set loss
    bad: int = 0  # not authentic, not RTP, or of nobody who is here
    injected: int = 0  # by faults
    unannounced: int = 0  # of a client that has sent no op 5 yet
    forgotten: int = 0  # by a NAT that has forgotten the client

    def as_dict(self) -> dict[str, int]:
        """Return the counters under their names in the control API."""
        return {
            "in": self.received,
            "out": self.forwarded,
            "dropped": self.dropped,
            "bad": self.bad,
            "injected": self.injected,
            "unannounced": self.unannounced,
            "forgotten": self.forgotten,
        }


# IP discovery: type 1 is the request, type 2 the answer, and 70 bytes follow the length (Discord's reference, "IP
# Discovery").
_DISCOVERY_BYTES = 74
_DISCOVERY_REQUEST = b"\x00\x01\x00\x46"
_DISCOVERY_RESPONSE = b"\x00\x02\x00\x46"
# Clients send an eight-byte counter to keep their NAT binding open. Discord sends it back.
_KEEPALIVE_BYTES = 8
_FIRST_RTCP, _LAST_RTCP = 200, 207
_RTCP_SENDER_REPORT = 200
_VIDEO_PAYLOAD_TYPE = 101  # H.264 in Discord's codec list
_VIDEO_BYTES = 900
# A header extension like Discord's own, with audio level and abs-send-time in two words. Receivers must skip it.
_EXTENSION = bytes.fromhex("51000090 10ff0000")
_MAX_PADDING_BYTES = 7
# A packet held back for reordering is sent after this time if no other packet follows.
_REORDER_HOLD_S = 0.04

Address = tuple[str, int]


@dataclass(slots=True, eq=False)
class MediaLeg:
    """The media connection of one voice session. `cipher` is None until the client has selected an encryption mode."""

    user_id: int
    channel_id: int
    ssrc: int
    key: bytes = field(default_factory=lambda: secrets.token_bytes(32), repr=False)
    cipher: packet_encryption.PacketCipher | None = None
    address: Address | None = None
    counter: int = 0
    # True once the client has said whether it speaks (op 5); its audio is dropped before.
    announced: bool = False
    # True while the session has no websocket: it keeps its keys but receives nothing until it resumes.
    muted: bool = False

    # When the client last sent anything (monotonic seconds), and how long its NAT remembers that; 0: for ever.
    sent_at: float = 0.0
    nat_idle_s: float = 0.0

    def next_counter(self) -> int:
        """Count one more packet to this client and return its nonce."""
        self.counter += 1
        return self.counter


class Forwarder(asyncio.DatagramProtocol):
    """The media server of the local Discord. Use it only from the event loop's thread; end it with `close`."""

    def __init__(self, network: NetworkConditions, *, seed: int) -> None:
        self.network = network
        self.counters = ForwarderCounters()
        # This generator makes no keys. It decides which packets are lost, with the same result in every run.
        self._random = random.Random(seed)  # noqa: S311
        self._legs: dict[int, MediaLeg] = {}
        self._transport: asyncio.DatagramTransport | None = None
        # Both by the receiver's and the speaker's SSRC.
        self._held: dict[tuple[int, int], tuple[bytes, asyncio.TimerHandle]] = {}
        # How long the NATs of these users remember a mapping over which nothing leaves.
        self._nats: dict[int, float] = {}

    @property
    def host(self) -> str:
        """The address of the UDP port in use."""
        assert self._transport is not None, "the forwarder was not started"
        return str(self._transport.get_extra_info("sockname")[0])

    @property
    def port(self) -> int:
        """The UDP port in use."""
        assert self._transport is not None, "the forwarder was not started"
        return int(self._transport.get_extra_info("sockname")[1])

    def add(self, leg: MediaLeg) -> None:
        """Start forwarding for a session."""
        leg.sent_at, leg.nat_idle_s = time.monotonic(), self._nats.get(leg.user_id, 0.0)
        self._legs[leg.ssrc] = leg

    def remove(self, leg: MediaLeg) -> None:
        """Stop forwarding for a session."""
        self._legs.pop(leg.ssrc, None)
        for pair in [pair for pair in self._held if leg.ssrc in pair]:
            self._held.pop(pair)[1].cancel()

    def leg_of(self, user_id: int) -> MediaLeg | None:
        """Return the media leg of a user's session, or None."""
        return next((leg for leg in self._legs.values() if leg.user_id == user_id), None)

    def duplicate_socket(self) -> socket.socket:
        """Return the media server's socket for another thread to send from. The caller closes it."""
        assert self._transport is not None, "the forwarder was not started"
        shared = self._transport.get_extra_info("socket")
        return socket.socket(shared.family, shared.type, fileno=os.dup(shared.fileno()))

    def close(self) -> None:
        for _, timer in self._held.values():
            timer.cancel()
        self._held.clear()
        if self._transport is not None:
            self._transport.close()

    # --- asyncio.DatagramProtocol ------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # There is no isinstance check, because Python 3.11's own datagram transport would fail it.
        self._transport = cast("asyncio.DatagramTransport", transport)

    def error_received(self, exc: Exception) -> None:
        """Ignore ICMP errors. A client that has gone also loses its websocket, which is noticed elsewhere."""

    def datagram_received(self, data: bytes, addr: Address) -> None:
        if self._nats:
            for leg in self._legs.values():
                if leg.address == addr:
                    leg.sent_at = time.monotonic()
        if len(data) == _DISCOVERY_BYTES and data.startswith(_DISCOVERY_REQUEST):
            self._discover(data, addr)
        elif len(data) == _KEEPALIVE_BYTES:
            self._send(data, addr)
        elif len(data) > 1 and data[0] >> 6 == 2 and _FIRST_RTCP <= data[1] <= _LAST_RTCP:
            return  # clients report to the server alone
        else:
            self._forward(data, addr)

    # --- helpers -----------------------------------------------------------------------------------------------

    def _discover(self, data: bytes, address: Address) -> None:
        (ssrc,) = struct.unpack_from(">I", data, 4)
        leg = self._legs.get(ssrc)
        if leg is None:
            self.counters.bad += 1
            return
        leg.address = address
        host = address[0].encode().ljust(64, b"\0")
        self._send(_DISCOVERY_RESPONSE + data[4:8] + host + struct.pack(">H", address[1]), address)

    def _forward(self, data: bytes, address: Address) -> None:
        self.counters.received += 1
        size = packet_encryption.unencrypted_bytes(data)
        sender = None if size is None else self._legs.get(int.from_bytes(data[8:12], "big"))
        packet = None
        if sender is not None and sender.cipher is not None:
            packet = packet_encryption.decrypt_packet(data, sender.cipher)
        if sender is None or packet is None:
            self.counters.bad += 1
            return
        sender.address = address
        if not sender.announced:
            self.counters.unannounced += 1
            return
        for receiver in self._listeners(sender.channel_id, besides=sender):
            self._transmit(packet, receiver)

    def _listeners(self, channel_id: int, *, besides: MediaLeg | None = None) -> list[MediaLeg]:
        return [
            leg
            for leg in self._legs.values()
            if leg.channel_id == channel_id and leg is not besides and leg.cipher and leg.address and not leg.muted
        ]

    def _transmit(self, packet: packet_encryption.RtpPacket, receiver: MediaLeg) -> None:
        assert receiver.cipher is not None
        assert receiver.address is not None
        if receiver.nat_idle_s and time.monotonic() - receiver.sent_at > receiver.nat_idle_s:
            self.counters.forgotten += 1
            return
        if self._random.random() < self.network.loss:
            self.counters.dropped += 1
            return
        padding = self._random.randint(1, _MAX_PADDING_BYTES) if self._random.random() < self.network.padding else 0
        encrypted = packet_encryption.encrypt_packet(
            packet,
            receiver.cipher,
            receiver.next_counter(),
            extension=_EXTENSION,
            padding_bytes=padding,
        )
        self.counters.forwarded += 1
        pair = (receiver.ssrc, packet.ssrc)
        held = self._held.pop(pair, None)
        if held is None and self._random.random() < self.network.reorder:
            timer = asyncio.get_running_loop().call_later(_REORDER_HOLD_S, self._release, pair, receiver.address)
            self._held[pair] = (encrypted, timer)
            return
        self._send(encrypted, receiver.address)
        if held is not None:
            held[1].cancel()
            self._send(held[0], receiver.address)

    def _release(self, pair: tuple[int, int], address: Address) -> None:
        held = self._held.pop(pair, None)
        if held is not None:
            self._send(held[0], address)

    def _send(self, data: bytes, address: Address) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.sendto(data, address)

    # --- faults ------------------------------------------------------------------------------------------------

    def set_nat(self, users: Iterable[int], *, idle_s: float) -> None:
        """Let the NATs of these users forget a mapping after `idle_s` seconds without a datagram of the user; 0: never.

        Audio for the user is dropped then until the user sends again.
        """
        for user_id in users:
            self._nats[user_id] = idle_s
            if not idle_s:
                del self._nats[user_id]
            for leg in self._legs.values():
                if leg.user_id == user_id:
                    leg.sent_at, leg.nat_idle_s = time.monotonic(), idle_s

    def inject_rtcp(self, receivers: Iterable[int], *, count: int) -> int:
        """Send RTCP sender reports to the sessions of these users. Return the number of packets sent."""
        sent = 0
        for leg, source in self._injection_targets(receivers):
            for _ in range(count):
                assert leg.cipher is not None
                header = struct.pack(">BBHI", 0x80, _RTCP_SENDER_REPORT, 6, source)
                body = bytes(20)  # sender info: NTP and RTP time, packet and octet counts
                nonce = struct.pack("<I", leg.next_counter() & 0xFFFF_FFFF)
                self._inject(leg, header + leg.cipher.encrypt(body, header, nonce) + nonce)
                sent += 1
        return sent

    def inject_video(self, receivers: Iterable[int], *, count: int) -> int:
        """Send video packets with SSRCs that no op 5 has announced. Return the number of packets sent."""
        sent = 0
        for leg, source in self._injection_targets(receivers):
            for sequence in range(count):
                packet = packet_encryption.RtpPacket(
                    _VIDEO_PAYLOAD_TYPE, sequence, sequence * 3000, source + 1, self._random.randbytes(_VIDEO_BYTES)
                )
                assert leg.cipher is not None
                self._inject(leg, packet_encryption.encrypt_packet(packet, leg.cipher, leg.next_counter()))
                sent += 1
        return sent

    def _injection_targets(self, receivers: Iterable[int]) -> list[tuple[MediaLeg, int]]:
        """Return the media leg of each given user, with the SSRC of another member of the channel.

        A user who is alone in the channel gets their own SSRC.
        """
        user_ids = set(receivers)
        targets: list[tuple[MediaLeg, int]] = []
        for leg in self._legs.values():
            if leg.user_id not in user_ids or leg.cipher is None or leg.address is None:
                continue
            others = self._listeners(leg.channel_id, besides=leg)
            targets.append((leg, others[0].ssrc if others else leg.ssrc))
        return targets

    def _inject(self, leg: MediaLeg, datagram: bytes) -> None:
        assert leg.address is not None
        self._send(datagram, leg.address)
        self.counters.injected += 1


# The SSRCs of sessions are this far apart, which leaves room for each session's video and retransmission streams.
SSRC_STEP: Final = 4
