"""The reader thread keeps the times of what came while the process stood still, and reads it before time passes."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from voice.transport import receive_buffer
from voice.transport.private import socket_reader
from voice.transport.private.socket_reader import PollingReader

if TYPE_CHECKING:
    from collections.abc import Callable

# The wall clock, where the monotonic clock shows 0.
_WALL_S = 1_700_000_000


@dataclass
class Machine:
    """A clock, a socket and `poll`, of which the test says how long they take. Takes the place of the receiver, too."""

    now: float = 100.0
    # Arrival and content of what waits in the socket.
    waiting: list[tuple[float, bytes]] = field(default_factory=list)
    tells_arrivals: bool = True
    # One entry for each poll: called after it, in which the process may stand still.
    after_polls: list[Callable[[], None]] = field(default_factory=list)
    calls: list[tuple[str, float]] = field(default_factory=list)
    # How many datagrams waited in the socket when each one was handled.
    left_unread: list[int] = field(default_factory=list)
    at: float | None = None

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
        return datagram, round((_WALL_S + came) * 1e9) if self.tells_arrivals else None

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

    def flush(self) -> float:
        self.calls.append(("flush", self.now if self.at is None else self.at))
        return 0.02

    def datagram(self, datagram: bytes) -> None:
        self.left_unread.append(len(self.waiting))
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

    machine.tells_arrivals = came is not None
    assert run(machine, stand_still, nothing)[0] == ("a", heard)
