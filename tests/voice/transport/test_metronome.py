"""The process that sends: at the time, over the right socket, and gone with its owner."""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from voice.transport import metronome_process as process
from voice.transport.metronome import Metronome, running_metronome

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="it needs Linux's local packet sockets")
# Nothing local takes this long, even on a busy machine.
PATIENCE_S = 10.0


@contextmanager
def wire() -> Iterator[tuple[socket.socket, socket.socket]]:
    """Lend a connected UDP socket, non-blocking as discord.py's is, and the one it is connected to."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as there, socket.socket(type=socket.SOCK_DGRAM) as here:
        there.bind(("127.0.0.1", 0))
        there.settimeout(PATIENCE_S)
        here.connect(there.getsockname())
        here.setblocking(False)
        yield here, there


@contextmanager
def metronome() -> Iterator[Metronome]:
    """Lend a running one."""
    with running_metronome() as running:
        assert running is not None
        yield running


def test_each_leaves_at_its_time_and_over_its_own_line() -> None:
    """In the order of their times, not of their handing over, and none before its time."""
    with metronome() as running, wire() as (here, there), wire() as (other, elsewhere):
        line, second = running.line(here), running.line(other)
        begun = time.monotonic()
        line.send(b"later", at=begun + 0.15)
        line.send(b"sooner", at=begun + 0.1)
        second.send(b"at once", at=begun - 5.0)
        assert elsewhere.recv(100) == b"at once"
        assert there.recv(100) == b"sooner"
        assert time.monotonic() >= begun + 0.0995
        assert there.recv(100) == b"later"
        assert time.monotonic() >= begun + 0.1495


def test_a_line_that_is_closed_sends_no_more() -> None:
    """What waited for its time goes with it."""
    with metronome() as running, wire() as (here, there):
        line, second = running.line(here), running.line(here)
        second.send(b"awake", at=0.0)
        assert there.recv(100) == b"awake"
        now = time.monotonic()
        line.send(b"never", at=now + 0.5)
        line.close()
        second.send(b"ever", at=now + 0.6)
        assert there.recv(100) == b"ever"


def test_a_socket_that_cannot_send_costs_its_own_datagrams_alone() -> None:
    """Nobody listens there any more: the system refuses it, and the others go on."""
    with metronome() as running, wire() as (here, there), wire() as (other, elsewhere):
        elsewhere.close()
        line, broken = running.line(here), running.line(other)
        for _ in range(3):
            broken.send(b"lost", at=0.0)
            line.send(b"heard", at=0.0)
            assert there.recv(100) == b"heard"


def test_its_end_is_noticed_and_nothing_breaks() -> None:
    """Killed, it is known to be gone at the next datagram: the rooms then send for themselves."""
    with metronome() as running, wire() as (here, _):
        line = running.line(here)
        os.kill(running._worker.pid, signal.SIGKILL)
        running._worker.wait(PATIENCE_S)
        line.send(b"lost", at=0.0)
        assert not running.alive
        line.send(b"lost", at=0.0)
        line.close()


def test_a_socket_that_is_closed_while_it_is_lent_costs_that_line_alone() -> None:
    """A room's connection may end at any moment; the others go on."""
    with metronome() as running, wire() as (here, there), wire() as (other, _):
        other.close()
        broken = running.line(other)
        broken.send(b"lost", at=0.0)
        assert running.alive
        running.line(here).send(b"heard", at=0.0)
        assert there.recv(100) == b"heard"


def test_one_that_is_stuck_is_given_up() -> None:
    """It takes nothing any more: the rooms send for themselves, and what it holds is never sent late."""
    with metronome() as running, wire() as (here, _):
        line = running.line(here)
        os.kill(running._worker.pid, signal.SIGSTOP)
        for _ in range(100_000):
            line.send(bytes(300), at=0.0)
            if not running.alive:
                break
        assert not running.alive
        assert running._worker.wait(PATIENCE_S) == -signal.SIGKILL


def test_it_ends_with_its_owner() -> None:
    """Closed, or simply gone with the process that held the other end."""
    with metronome() as running:
        worker = running._worker
    assert worker.returncode == 0


def test_what_the_process_does_message_by_message() -> None:
    """The same in this process: lines are opened, replaced and closed, unknown ones ignored, and the end ends it."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs, wire() as (here, there), wire() as (other, elsewhere):
        serving = threading.Thread(target=process.serve, args=(theirs,))
        serving.start()
        for lent in (here, other):
            socket.send_fds(ours, [process.HEADER.pack(process.OPEN, 1, 0.0)], [lent.fileno()])
        ours.send(process.HEADER.pack(process.SEND, 2, 0.0) + b"to nobody")
        ours.send(process.HEADER.pack(process.CLOSE, 7, 0.0))
        ours.send(process.HEADER.pack(process.SEND, 1, 0.0) + b"to the second")
        assert elsewhere.recv(100) == b"to the second"
        there.setblocking(False)
        with pytest.raises(BlockingIOError):
            there.recv(100)
        ours.close()
        serving.join(PATIENCE_S)
        assert not serving.is_alive()


def test_precedence_is_asked_for_and_not_insisted_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where it is refused, it runs like everybody."""
    asked: list[int] = []

    def refuse(pid: int, policy: int, _param: os.sched_param) -> None:
        asked.append(policy)
        raise PermissionError

    monkeypatch.setattr(os, "sched_setscheduler", refuse)
    process.take_precedence()
    assert asked == [os.SCHED_RR]
