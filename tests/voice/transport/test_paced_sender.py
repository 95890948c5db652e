"""The paced sender's process sends each datagram at its time over the right socket, and ends with its owner."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.patience import PATIENCE_S
from voice.transport import paced_sender as module
from voice.transport import paced_sender_process as process
from voice.transport.paced_sender import ENDED, PacedSender, running_paced_sender

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="it needs Linux's local packet sockets")


@pytest.fixture(autouse=True)
def _time_to_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a process on a busy machine end by itself, even if it has only just been started."""
    monkeypatch.setattr(module, "END_TIMEOUT_S", PATIENCE_S)


@contextmanager
def wire() -> Iterator[tuple[socket.socket, socket.socket]]:
    """Yield a connected UDP socket, non-blocking like discord.py's, and the socket that it is connected to."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as there, socket.socket(type=socket.SOCK_DGRAM) as here:
        there.bind(("127.0.0.1", 0))
        there.settimeout(PATIENCE_S)
        here.connect(there.getsockname())
        here.setblocking(False)
        yield here, there


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[subprocess.Popen[bytes]]:
    """The processes that the test has started."""
    found: list[subprocess.Popen[bytes]] = []

    def kept(*args: Any, **options: Any) -> subprocess.Popen[bytes]:
        found.append(subprocess.Popen(*args, **options))
        return found[-1]

    monkeypatch.setattr(module, "subprocess", SimpleNamespace(**vars(subprocess) | {"Popen": kept}))
    return found


@contextmanager
def paced_sender() -> Iterator[PacedSender]:
    with running_paced_sender() as running:
        assert running is not None
        yield running


@contextmanager
def paced_sender_in_a_thread() -> Iterator[PacedSender]:
    """Yield a paced sender with the process's loop in a thread, where the test can set its clock."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.setblocking(False)
    with theirs:
        serving = threading.Thread(target=process.serve, args=(theirs,))
        serving.start()
        running = PacedSender(ours, cast("subprocess.Popen[bytes]", SimpleNamespace(wait=serving.join)))
        try:
            yield running
        finally:
            running.close()
            serving.join(PATIENCE_S)


def test_each_leaves_at_its_time_and_over_its_own_line() -> None:
    """Datagrams are sent in the order of their times, none before its time, each over its own line."""
    with paced_sender() as running, wire() as (here, there), wire() as (other, elsewhere):
        line, second = running.lend(here), running.lend(other)
        # The process takes some time to begin.
        running.send(second, b"at once", at=time.monotonic() - 5.0)
        assert elsewhere.recv(100) == b"at once"
        begun = time.monotonic()
        running.send(line, b"later", at=begun + 0.15)
        running.send(line, b"sooner", at=begun + 0.1)
        assert there.recv(100) == b"sooner"
        assert time.monotonic() >= begun + 0.0995
        assert there.recv(100) == b"later"
        assert time.monotonic() >= begun + 0.1495


def test_it_gets_a_bare_environment(monkeypatch: pytest.MonkeyPatch, started: list[subprocess.Popen[bytes]]) -> None:
    """The process inherits no secret: of our environment it has only what some Pythons need to start."""
    monkeypatch.setenv("DISCORD_TOKEN", "correct-horse-battery")
    monkeypatch.setenv("LD_LIBRARY_PATH", "/nowhere")
    with paced_sender():
        theirs = Path(f"/proc/{started[0].pid}/environ").read_bytes()
    assert theirs in (b"", b"LD_LIBRARY_PATH=/nowhere\0")


def test_a_line_that_is_closed_sends_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """Closing a line drops the datagrams that still wait in it."""
    now = 100.0
    monkeypatch.setattr(process, "time", SimpleNamespace(monotonic=lambda: now))
    with paced_sender_in_a_thread() as running, wire() as (here, there):
        line, second = running.lend(here), running.lend(here)
        running.send(line, b"never", at=now + 10.0)
        running.give_back(line)
        running.send(second, b"closed", at=0.0)
        assert there.recv(100) == b"closed"
        now += 20.0
        running.send(second, b"ever", at=0.0)
        assert there.recv(100) == b"ever"


def test_a_socket_that_is_closed_while_it_is_lent_costs_that_line_alone() -> None:
    """If a lent socket is closed, only its line stops. A room's connection may end at any moment."""
    with paced_sender() as running, wire() as (here, there), wire() as (other, _):
        other.close()
        broken = running.lend(other)
        running.send(broken, b"lost", at=0.0)
        assert running.alive
        running.send(running.lend(here), b"heard", at=0.0)
        assert there.recv(100) == b"heard"


@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGSTOP])
def test_one_that_ends_or_is_stuck_is_given_up(sent: signal.Signals, started: list[subprocess.Popen[bytes]]) -> None:
    """Each room sends for itself then, what a stuck process holds is never sent late, and the outage says why."""
    with paced_sender() as running, wire() as (here, _):
        line = running.lend(here)
        os.kill(started[0].pid, sent)
        for _ in range(100_000):
            running.send(line, bytes(300), at=0.0)
            if not running.alive:
                break
        assert started[0].wait(PATIENCE_S) == -signal.SIGKILL
        running.send(line, b"lost", at=0.0)
        running.give_back(line)
        running.lend(here)
        assert running.outage is not None
        assert (running.outage.retry_at, str(running.outage.problem)) == (None, ENDED)


def test_it_ends_with_its_owner(started: list[subprocess.Popen[bytes]]) -> None:
    """The process ends when the paced sender is closed or the process at the other end is gone."""
    with paced_sender():
        pass
    assert started[0].returncode == 0
