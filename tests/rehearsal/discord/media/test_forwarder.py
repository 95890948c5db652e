"""The media server, tested with datagrams but without a socket: who receives each packet, and network simulation."""

from __future__ import annotations

import asyncio
import struct
import time
from typing import cast

import pytest

from rehearsal.discord.media import packet_encryption
from rehearsal.discord.media.forwarder import Address, Forwarder, MediaLeg, NetworkConditions

ADA, BEN, CHLOE = 2001, 2002, 2003


class _Wire:
    """Records the packets that the forwarder sends, in place of a transport."""

    def __init__(self) -> None:
        self.sent: list[tuple[bytes, Address]] = []
        self.told = asyncio.Event()

    def sendto(self, data: bytes, address: Address) -> None:
        self.sent.append((data, address))
        self.told.set()

    def is_closing(self) -> bool:
        return False


class Room:
    """A forwarder with people in it."""

    def __init__(self, network: NetworkConditions, *, seed: int = 1) -> None:
        self.forwarder = Forwarder(network, seed=seed)
        self.wire = _Wire()
        self.forwarder.connection_made(cast("asyncio.BaseTransport", self.wire))
        self.sequence = 0

    def add(self, user_id: int, *, channel_id: int = 600, mode: str = packet_encryption.XCHACHA_MODE) -> MediaLeg:
        leg = MediaLeg(user_id=user_id, channel_id=channel_id, ssrc=user_id * 4)
        leg.cipher = packet_encryption.packet_cipher(mode, leg.key)
        leg.announced = True
        self.forwarder.add(leg)
        self.forwarder.datagram_received(_discovery(leg.ssrc), _address(user_id))
        return leg

    def say(self, speaker: MediaLeg, payload: bytes = b"opus") -> None:
        self.sequence += 1
        packet = packet_encryption.RtpPacket(0x78, self.sequence, self.sequence * 960, speaker.ssrc, payload)
        assert speaker.cipher is not None
        datagram = packet_encryption.encrypt_packet(packet, speaker.cipher, self.sequence)
        self.forwarder.datagram_received(datagram, _address(speaker.user_id))

    def heard(self, listener: MediaLeg) -> list[packet_encryption.RtpPacket]:
        assert listener.cipher is not None
        opened = [
            packet_encryption.decrypt_packet(data, listener.cipher)
            for data, to in self.wire.sent
            if to == listener.address
        ]
        return [packet for packet in opened if packet is not None]


def _address(user_id: int) -> Address:
    return ("127.0.0.1", user_id)


def _discovery(ssrc: int) -> bytes:
    return struct.pack(">HHI", 1, 70, ssrc) + bytes(66)


def test_sound_that_nobody_has_announced_is_dropped() -> None:
    """Until a client has said that it speaks (op 5), nobody hears it."""
    room = Room(NetworkConditions())
    ada, ben = room.add(ADA), room.add(BEN)
    ada.announced = False
    room.say(ada)
    assert room.heard(ben) == []
    assert room.forwarder.counters.unannounced == 1
    ada.announced = True
    room.say(ada)
    assert len(room.heard(ben)) == 1


def test_loss_drops_the_set_share_and_repeats_with_the_seed() -> None:
    """The configured share of packets is lost, and the same seed loses the same packets."""
    arrived = []
    for _ in range(2):
        room = Room(NetworkConditions(loss=0.2), seed=7)
        ada, ben = room.add(ADA), room.add(BEN)
        for _ in range(500):
            room.say(ada)
        arrived.append([packet.sequence for packet in room.heard(ben)])
        assert room.forwarder.counters.dropped == 500 - len(arrived[-1])
    assert arrived[0] == arrived[1]
    assert 370 < len(arrived[0]) < 430


def test_a_nat_forgets_who_is_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Audio for a member whose NAT forgot them is dropped until they send anything, a keepalive too. Others hear."""
    now = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    room = Room(NetworkConditions())
    ada, ben, chloe = room.add(ADA), room.add(BEN), room.add(CHLOE)
    room.forwarder.set_nat([BEN], idle_s=30)
    heard = []
    for now in (130.0, 131.0, 161.0):
        room.say(ada)
        heard.append(len(room.heard(ben)))
        if now == 131.0:
            room.forwarder.datagram_received(bytes(8), _address(BEN))
    assert heard == [1, 1, 2]
    assert len(room.heard(chloe)) == 3
    assert room.forwarder.counters.forgotten == 1
