"""The voice socket: what it drops is counted, and what came while the process stood still keeps its time."""

from __future__ import annotations

import socket
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from voice.transport import receive_buffer
from voice.transport.private import socket_reader
from voice.transport.private.socket_reader import PollingReader
from voice.transport.receive_buffer import DATAGRAM_BYTES, dropped, note_arrivals, receive

# The wall clock, where the monotonic clock shows 0.
_WALL_S = 1_700_000_000


@dataclass
class Machine:
    """A clock, a socket and `poll`, of which the test says how long they take. Takes the place of the receiver, too."""

    now: float = 100.0
    # Arrival and content of what waits in the socket.
    waiting: list[tuple[float, bytes]] = field(default_factory=list)
    has_arrivals: bool = True
    # One entry for each poll: called after it, in which the process may stand still.
    after_polls: list[Callable[[], None]] = field(default_factory=list)
    calls: list[tuple[str, float]] = field(default_factory=list)
    # How many datagrams waited in the socket when each one was handled.
    left_unread: list[int] = field(default_factory=list)
    at: float | None = None
    # For each datagram: after what time it came, as the receiver was told.
    came_after: list[float] = field(default_factory=list)
    bound: float = -1.0

    def monotonic(self) -> float:
        return self.now

    def time_ns(self) -> int:
        return round((_WALL_S + self.now) * 1e9)

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def recv(self, most_bytes: int) -> bytes:
        return self.receive(self, most_bytes)[0]

    def receive(self, _: Any, most_bytes: int) -> tuple[bytes, int | None]:
        if not self.waiting:
            raise BlockingIOError
        came, datagram = self.waiting.pop(0)
        return datagram, round((_WALL_S + came) * 1e9) if self.has_arrivals else None

    def register(self, *_: object) -> None:
        pass

    def fileno(self) -> int:
        return 7

    def poll(self, timeout_ms: float) -> list[tuple[int, int]]:
        found = [(7, 1)] if self.waiting else []
        if not found:
            self.now += timeout_ms / 1000
        self.after_polls.pop(0)()
        return found

    # The receiver.

    def set_time(self, at: float | None) -> None:
        self.at = at

    def set_came_after(self, at: float) -> None:
        self.bound = at

    def flush(self) -> float:
        self.calls.append(("flush", self.now if self.at is None else self.at))
        return 0.02

    def datagram(self, datagram: bytes) -> None:
        self.left_unread.append(len(self.waiting))
        self.came_after.append(self.bound)
        self.calls.append((datagram.decode(), self.now if self.at is None else self.at))

    def overflowed(self, datagrams: int) -> None:
        raise AssertionError(datagrams)


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    machine = Machine()
    monkeypatch.setattr(socket_reader, "time", machine)
    monkeypatch.setattr(socket_reader, "select", SimpleNamespace(poll=lambda: machine, POLLIN=1))
    monkeypatch.setattr(receive_buffer, "receive", machine.receive)
    monkeypatch.setattr(receive_buffer, "dropped", lambda _: 0)
    return machine


def run(machine: Machine, *after_polls: Callable[[], None]) -> list[tuple[str, float]]:
    """Run the reader for so many polls; return what the receiver was told, and at what time."""
    state: Any = SimpleNamespace(socket=machine)
    receiver: Any = machine
    reader = PollingReader(state, receiver)
    reader._callbacks.append(machine.datagram)
    reader._running.set()
    machine.after_polls = [*after_polls, reader._end.set]
    reader.run()
    return machine.calls


def nothing() -> None:
    """The process goes on at once."""


def test_what_is_read_as_it_comes_has_the_time_of_its_reading(machine: Machine) -> None:
    def speak() -> None:
        machine.waiting = [(machine.now - 0.01, b"a")]

    told = run(machine, speak, nothing)
    assert told == [("flush", 100.0), ("a", 100.0), ("flush", 100.0), ("flush", pytest.approx(100.02))]


@pytest.mark.parametrize("waited", [2, 200])
def test_what_came_while_the_process_stood_still_has_its_own_time(machine: Machine, waited: int) -> None:
    """It is read before anything else happens, because nothing is missing that waits in the socket. Where it is too
    much for one turn, time passes as it came. Then all that is due by now is done at once.
    """
    came = [100.5 + 0.01 * n for n in range(waited)]

    def stand_still() -> None:
        machine.now += 3
        machine.waiting = [(at, b"%d" % n) for n, at in enumerate(came)]

    told = run(machine, stand_still, *[nothing] * (1 + (waited > 128)))
    assert [at for what, at in told if what != "flush"] == pytest.approx(came, abs=1e-6)
    assert [what for what, _ in told if what != "flush"] == [str(n) for n in range(waited)]
    first = min(waited, 128)
    assert told[first][0] == "flush"
    flushed = [at for what, at in told if what == "flush"]
    expected = [came[first - 1], 103.0] if waited == first else [came[first - 1], came[-1], 103.0]
    assert flushed == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(("came", "heard"), [(None, 103.0), (99.0, 100.0), (104.0, 103.0)])
def test_an_arrival_that_cannot_be_is_not_believed(machine: Machine, came: float | None, heard: float) -> None:
    """The system does not tell it, or the wall clock was set meanwhile."""

    def stand_still() -> None:
        machine.now += 3
        machine.waiting = [(came or 0.0, b"a")]

    machine.has_arrivals = came is not None
    assert run(machine, stand_still, nothing)[0] == ("a", heard)


@pytest.mark.parametrize("busy_s", [0.0, 0.5, 3.0])
@pytest.mark.parametrize("waited", [1, 200])
def test_nothing_counts_as_later_than_it_came(machine: Machine, waited: int, busy_s: float) -> None:
    """However long it waited in the socket, and in how many turns it is read: people may have agreed meanwhile."""
    came = [100.03 + 0.0001 * n for n in range(waited)]

    def speak() -> None:
        machine.waiting = [(at, b"%d" % n) for n, at in enumerate(came)]
        machine.now = max(came[-1], machine.now) + busy_s

    run(machine, nothing, speak, nothing, nothing)
    assert len(machine.came_after) == waited
    assert all(bound <= at for bound, at in zip(machine.came_after, came, strict=True))
    assert min(machine.came_after) == pytest.approx(100.0, abs=0.021), "what the socket was last empty at"


pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="other systems do not tell what they dropped")

# A datagram with 20 ms of speech at Discord's usual bit rate.
_SPEECH = bytes(200)


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
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
