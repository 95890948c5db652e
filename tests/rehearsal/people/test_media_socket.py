"""The UDP socket repeats its discovery request until it is answered, and passes on voice packets only."""

from __future__ import annotations

import asyncio
import struct

import pytest

from rehearsal.people.media_socket import MediaSocket
from tests.patience import PATIENCE_S


class _Server(asyncio.DatagramProtocol):
    """A server that answers only the second discovery request and echoes everything else twice."""

    def __init__(self) -> None:
        self.asked = 0
        self.transport: asyncio.DatagramTransport | None = None

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        assert self.transport is not None
        if data[:2] == b"\0\1":
            self.asked += 1
            if self.asked > 1:
                reply = struct.pack(">HHI64sH", 2, 70, 9, addr[0].encode(), addr[1])
                self.transport.sendto(reply, addr)
        else:
            self.transport.sendto(data, addr)
            self.transport.sendto(data, addr)


@pytest.mark.asyncio
async def test_discovery_is_asked_again_and_is_not_voice() -> None:
    """The discovery request is repeated when it is lost.

    Voice packets are passed on with their arrival time. The discovery reply is not passed on.
    """
    transport, server = await asyncio.get_running_loop().create_datagram_endpoint(_Server, local_addr=("127.0.0.1", 0))
    server.transport = transport
    heard: list[tuple[bytes, float]] = []
    complete = asyncio.Event()

    def on_datagram(data: bytes, at: float) -> None:
        heard.append((data, at))
        if len(heard) == 2:
            complete.set()

    port = int(transport.get_extra_info("sockname")[1])
    media = await MediaSocket.open(("127.0.0.1", port), on_datagram, clock=lambda: 12.5)
    try:
        async with asyncio.timeout(PATIENCE_S):
            address, own_port = await media.discover(9)
            assert (address, server.asked) == ("127.0.0.1", 2)
            assert 0 < own_port < 65_536
            assert media.send(b"voice")
            await complete.wait()
    finally:
        media.close()
        transport.close()
    assert heard == [(b"voice", 12.5)] * 2
    assert not media.send(b"too late")


@pytest.mark.asyncio
async def test_a_discovery_that_is_cancelled_as_its_answer_arrives_ends() -> None:
    """The cancellation is not lost. Otherwise the person's task would go on after the person has left."""
    transport, server = await asyncio.get_running_loop().create_datagram_endpoint(_Server, local_addr=("127.0.0.1", 0))
    server.transport = transport
    port = int(transport.get_extra_info("sockname")[1])
    media = await MediaSocket.open(("127.0.0.1", port), lambda _data, _at: None)
    try:
        discovery = asyncio.create_task(media.discover(9), name="discovery")
        await asyncio.sleep(0)
        media.datagram_received(struct.pack(">HHI64sH", 2, 70, 9, b"127.0.0.1", port), ("127.0.0.1", port))
        # One turn of the loop, so that the inner future is done and the task has not yet run.
        asyncio.get_running_loop().call_soon(discovery.cancel)
        await asyncio.wait({discovery})
        assert discovery.cancelled()
    finally:
        media.close()
        transport.close()
