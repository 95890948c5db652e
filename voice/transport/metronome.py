"""Sends ready datagrams at their times, whatever keeps this process's interpreter busy: in a small process of its own.

Threads share one interpreter, and a frame that is due waits until another thread gives it up: with ten rooms beside a
busy event loop the jitter's P99 was 4 to 9 ms, with one process for all of them 0.6 ms. It needs Unix's way to lend a
socket to another process; where that is missing, or the process is gone, rooms send for themselves. One that ends is
started again, some times in a row and then no more; what it held, 40 ms at most, is lost.
"""

from __future__ import annotations

import errno
import itertools
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import structlog

from voice.circuit_breaker import Outage
from voice.transport import metronome_process as process

if TYPE_CHECKING:
    from collections.abc import Iterator

_log = structlog.get_logger()

_END_TIMEOUT_S = 2.0
# So many ends in a row, each within a minute of its start, are no accident: something here ends such processes.
MOST_ENDS_IN_A_ROW = 5
STABLE_S = 60.0
# The first time it is started at once; then the system may need a moment. Doubled each time.
FIRST_WAIT_S = 1.0

ENDED = "Something outside ended it."
GIVEN_UP = (
    "Something outside ended it over and over. Look into the system's log (a limit on memory, or on processes), then "
    "start me anew."
)


@dataclass(slots=True)
class Restarts:
    """Decides when a process that ended is started again. Pure."""

    ends_in_a_row: int = 0

    def wait_s(self, lived_s: float) -> float | None:
        """Return how long to wait before the next start, now that it ended after `lived_s`; None: no more starts."""
        self.ends_in_a_row = 1 if lived_s >= STABLE_S else self.ends_in_a_row + 1
        if self.ends_in_a_row > MOST_ENDS_IN_A_ROW:
            return None
        return 0.0 if self.ends_in_a_row == 1 else FIRST_WAIT_S * 2.0 ** (self.ends_in_a_row - 2)


@dataclass(frozen=True, slots=True)
class Worker:
    """One process, and our end of the socket on which it takes messages: it ends when that is closed."""

    messages: socket.socket
    process: subprocess.Popen[bytes]


class Metronome:
    """The process that sends. Lent by `running_metronome`; every call may come from any thread, and none blocks.

    *Ownership*: a thread waits for the process's end and starts it again; `close` ends both.
    """

    def __init__(self, worker: Worker) -> None:
        self._worker: Worker | None = worker
        self._numbers = itertools.count(1)
        self._lines: dict[int, MetronomeLine] = {}
        # Held for one message at most, and while a new process is told of the lines.
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._outage: Outage | None = None
        self._keeper = threading.Thread(target=self._keep, args=(worker,), name="metronome-keeper", daemon=True)
        self._keeper.start()

    @property
    def alive(self) -> bool:
        """Return whether what is handed over is sent."""
        return self._worker is not None

    @property
    def outage(self) -> Outage | None:
        """Return since when there is no process and when there is to be one again; None while there is one."""
        return self._outage

    def line(self, sock: socket.socket) -> MetronomeLine:
        """Lend a connected UDP socket; what is sent over the line leaves through it."""
        line = MetronomeLine(self, next(self._numbers), sock)
        with self._lock:
            self._lines[line.number] = line
            self._lend(line)
        return line

    def give_back(self, line: MetronomeLine) -> None:
        """Forget a line."""
        with self._lock:
            self._lines.pop(line.number, None)
            self._tell(process.HEADER.pack(process.CLOSE, line.number, 0.0))

    def send(self, line: int, at: float, datagram: bytes) -> None:
        """Hand a datagram over. What cannot be handed over is lost, and nobody is waited for."""
        with self._lock:
            self._tell(process.HEADER.pack(process.SEND, line, at) + datagram)

    def close(self) -> None:
        """End the process. What it still holds is not sent."""
        self._closing.set()
        with self._lock:
            worker, self._worker = self._worker, None
        if worker is not None:
            worker.messages.close()
        self._keeper.join(_END_TIMEOUT_S)
        if worker is not None and self._keeper.is_alive():
            worker.process.kill()
            self._keeper.join(_END_TIMEOUT_S)

    # -- with the lock held ----------------------------------------------------------------------------------

    def _lend(self, line: MetronomeLine) -> None:
        message = process.HEADER.pack(process.OPEN, line.number, 0.0)
        try:
            if self._worker is not None:
                socket.send_fds(self._worker.messages, [message], [line.sock.fileno()])
        except OSError as error:
            if error.errno == errno.EBADF:
                # The socket was closed while it was being lent: its connection is over, and nothing else.
                _log.debug("closed_socket_not_lent")
                return
            self._lose(error)

    def _tell(self, message: bytes) -> None:
        try:
            if self._worker is not None:
                self._worker.messages.send(message)
        except OSError as error:
            self._lose(error)

    def _lose(self, error: OSError) -> None:
        """It is gone, or stuck with some seconds of sound before it, which must not come later all at once."""
        worker, self._worker = self._worker, None
        assert worker is not None, "something was sent to it"
        _log.error("metronome_lost", error_class=type(error).__name__, problem=ENDED)
        worker.process.kill()

    # -- the thread that keeps it ----------------------------------------------------------------------------

    def _keep(self, worker: Worker) -> None:
        """Wait for the end of the process and start it again, until `close` or too many ends."""
        restarts = Restarts()
        while True:
            begun = time.monotonic()
            worker.process.wait()
            if self._closing.is_set():
                return
            with self._lock:
                if self._worker is worker:
                    self._worker = None
                    _log.error("metronome_lost", status=worker.process.returncode, problem=ENDED)
            worker.messages.close()
            again = self._start_again(restarts, time.monotonic() - begun)
            if again is None:
                return
            worker = again

    def _start_again(self, restarts: Restarts, lived_s: float) -> Worker | None:
        """Return a new process that knows the lines; None if there is to be none."""
        since = time.monotonic()
        while (wait_s := restarts.wait_s(lived_s)) is not None:
            self._outage = Outage(since, since + wait_s, ENDED)
            if self._closing.wait(wait_s):
                return None
            worker = _started()
            if worker is not None:
                return worker if self._put_in(worker) else None
            lived_s = 0.0
        self._outage = Outage(since, None, GIVEN_UP)
        _log.error("metronome_given_up", problem=GIVEN_UP)
        return None

    def _put_in(self, worker: Worker) -> bool:
        """Let a new process send; return False where none is wanted any more."""
        with self._lock:
            wanted = not self._closing.is_set()
            if wanted:
                self._worker, self._outage = worker, None
                for line in self._lines.values():
                    self._lend(line)
        if wanted:
            _log.warning("metronome_started_again")
        else:
            worker.messages.close()
            worker.process.wait()
        return wanted


class MetronomeLine:
    """One room's way out: a lent socket. Made by `Metronome.line`; closed with the connection it belongs to."""

    def __init__(self, metronome: Metronome, number: int, sock: socket.socket) -> None:
        self.sock = sock
        self.number = number
        self._metronome = metronome

    def send(self, datagram: bytes, *, at: float) -> None:
        """Send `datagram` at `at` (monotonic seconds), or now if that is over."""
        self._metronome.send(self.number, at, datagram)

    def close(self) -> None:
        """Give the socket back; what is still to be sent over it is not."""
        self._metronome.give_back(self)


@contextmanager
def running_metronome() -> Iterator[Metronome | None]:
    """Start the process and lend it; None where this system has no such thing, or the process does not start."""
    worker = _started()
    if worker is None:
        yield None
        return
    metronome = Metronome(worker)
    try:
        yield metronome
    finally:
        metronome.close()


def _started() -> Worker | None:
    if sys.platform != "linux":
        # Elsewhere there is no packet-keeping local socket that tells when its other end is gone.
        return None
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        try:
            worker = subprocess.Popen(  # noqa: S603 - our own file and our own Python
                [sys.executable, "-I", "-S", process.__file__, str(theirs.fileno())],
                pass_fds=(theirs.fileno(),),
                stdin=subprocess.DEVNULL,
                # A terminal's Ctrl-C is for the bot, whose last words it still sends.
                start_new_session=True,
            )
        except OSError as error:
            ours.close()
            _log.warning("metronome_not_started", error_class=type(error).__name__)
            return None
    ours.setblocking(False)
    return Worker(ours, worker)
