"""A person's UDP socket to the voice server, for one voice session."""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import TYPE_CHECKING, Any, Self

from rehearsal.people.rtp import discovery_reply, discovery_request

if TYPE_CHECKING:
    from collections.abc import Callable

# A request that gets no answer is sent again after this time. The caller limits the whole time.
_DISCOVERY_RESEND_S = 0.3


class MediaSocket(asyncio.DatagramProtocol):
    """Passes each datagram on with its arrival time. `open` creates it; the owner must close it.

    *Cancellation*: `discover` can be cancelled. The socket stays usable.
    """

    def __init__(self, on_datagram: Callable[[bytes, float], None], clock: Callable[[], float]) -> None:
        self._on_datagram = on_datagram
        self._clock = clock
        self._discovered: asyncio.Future[tuple[str, int]] = asyncio.get_running_loop().create_future()
        self._transport: asyncio.DatagramTransport | None = None

    @classmethod
    async def open(
        cls,
        server: tuple[str, int],
        on_datagram: Callable[[bytes, float], None],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> Self:
        """Return a socket that exchanges datagrams only with `server`. Raises `OSError`."""
        loop = asyncio.get_running_loop()
        # The transport is not stored in connection_made: up to Python 3.11 the transport passed there is not of the
        # type DatagramTransport.
        transport, media = await loop.create_datagram_endpoint(lambda: cls(on_datagram, clock), remote_addr=server)
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
        self._on_datagram(data, self._clock())

    def error_received(self, exc: Exception) -> None:
        """Ignore ICMP errors. A server that restarts also closes the websocket, which is noticed elsewhere."""
