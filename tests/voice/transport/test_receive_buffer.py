"""The receive buffer of the voice socket: its size is reported as granted, and what it dropped is counted."""

from __future__ import annotations

import socket
import sys
import time
from typing import TYPE_CHECKING

import pytest

from voice.transport.receive_buffer import DATAGRAM_BYTES, dropped, note_arrivals, receive

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="other systems do not tell what they dropped")

# A datagram with 20 ms of speech at Discord's usual bit rate.
_SPEECH = bytes(200)


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    """A receiving socket, and one that sends to it."""
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiving,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sending,
    ):
        receiving.bind(("127.0.0.1", 0))
        receiving.setblocking(False)
        sending.connect(receiving.getsockname())
        yield receiving, sending


def _waiting(sock: socket.socket) -> int:
    count = 0
    try:
        while sock.recv(2048):
            count += 1
    except BlockingIOError:
        return count
    raise AssertionError("an empty datagram")


def test_what_does_not_fit_is_counted(pair: tuple[socket.socket, socket.socket]) -> None:
    """What was sent has arrived or was counted as dropped, and a datagram takes the room that is assumed."""
    receiving, sending = pair
    receiving.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64_000)
    assert dropped(receiving) == 0
    for _ in range(1000):
        sending.send(_SPEECH)
    arrived = _waiting(receiving)
    assert arrived + dropped(receiving) == 1000
    assert arrived == pytest.approx(64_000 / DATAGRAM_BYTES, rel=0.5)


def test_a_datagram_comes_with_its_arrival(pair: tuple[socket.socket, socket.socket]) -> None:
    receiving, sending = pair
    sending.send(b"before")
    note_arrivals(receiving)
    sent_at = time.time_ns()
    sending.send(b"after")
    assert receiving.recv(2048) == b"before"
    datagram, came_at = receive(receiving, 2048)
    assert datagram == b"after"
    assert came_at is not None
    assert sent_at <= came_at <= time.time_ns()
    with pytest.raises(BlockingIOError):
        receive(receiving, 2048)
