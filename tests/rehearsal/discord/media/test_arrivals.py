"""Each datagram has the time at which it arrived, even when it is read later."""

from __future__ import annotations

import asyncio
import socket
import sys
import time

import pytest

from rehearsal.discord.media.arrivals import PacketArrival, arrived_at
from rehearsal.discord.media.network import NetworkConditions
from tests.rehearsal.discord.media.test_forwarder import ADA, BEN, Room
from voice.transport.opus import SILENCE_FRAME


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nobody notes it")
def test_it_is_the_time_of_arrival_and_not_of_reading() -> None:
    with socket.socket(type=socket.SOCK_DGRAM) as here, socket.socket(type=socket.SOCK_DGRAM) as there:
        there.bind(("127.0.0.1", 0))
        here.connect(there.getsockname())
        here.send(b"the kernel begins to note times when it is first asked")
        there.recv(100)
        arrived_at(there)
        before = time.time()
        here.send(b"this one it noted")
        after = time.time()
        there.recv(100)
        assert before - 0.001 <= arrived_at(there) <= after + 0.001
        assert arrived_at(there) == arrived_at(there)


def test_without_a_socket_it_is_now() -> None:
    before = time.time()
    assert before <= arrived_at(None) <= time.time()


@pytest.mark.asyncio
async def test_the_forwarder_tells_who_wants_to_know() -> None:
    """The forwarder reports every packet that it could decrypt, and whether the packet was silence."""
    room = Room(NetworkConditions())
    ada, _ = room.add(ADA), room.add(BEN)
    room.forwarder._arrived_at = lambda: 5.0  # type: ignore[method-assign]
    told: list[PacketArrival] = []
    room.forwarder.watch = told.append
    room.say(ada)
    room.say(ada, SILENCE_FRAME)
    room.forwarder.datagram_received(bytes(60), ("127.0.0.1", 9))
    assert told == [PacketArrival(ADA, 1, False, 5.0), PacketArrival(ADA, 2, True, 5.0)]
    await asyncio.sleep(0)
