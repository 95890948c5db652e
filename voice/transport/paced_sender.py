"""Sends finished datagrams on time from a small separate process, however busy this one is.

Threads share one interpreter lock, so a due frame waits for other threads: with ten rooms beside a busy event loop the
jitter's P99 was 4 to 9 ms; with one process for all rooms it was 0.6 ms. The process needs a Unix socket that can pass
file descriptors. Where that is missing, or while the process is down, each room sends its own datagrams. A process that
ends is restarted a few times; the datagrams that it held (40 ms at most) are lost.
"""

from __future__ import annotations

import errno
import itertools
import os
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
from voice.errors import VoiceError
from voice.transport import paced_sender_process as process

if TYPE_CHECKING:
    from collections.abc import Iterator

_log = structlog.get_logger()

_END_TIMEOUT_S = 2.0
_INHERITED = ("LD_LIBRARY_PATH",)
# If the process ends this often in a row, each time within a minute, something must be ending it on purpose.
MOST_ENDS_IN_A_ROW = 5
STABLE_S = 60.0
# The wait before the second restart, doubled each time; the first restart is immediate.
FIRST_WAIT_S = 1.0

ENDED = "Something outside ended it."
GIVEN_UP = (
    "Something outside ended it over and over. Look into the system's log (a limit on memory, or on processes), then "
    "start me anew."
)


@dataclass(slots=True)
class Restarts:
    """Decides when to restart a process that ended. Pure."""

    ends_in_a_row: int = 0

    def wait_s(self, lived_s: float) -> float | None:
        """Return the wait before the next start of a process that ran for `lived_s`; None: do not start it again."""
        self.ends_in_a_row = 1 if lived_s >= STABLE_S else self.ends_in_a_row + 1
        if self.ends_in_a_row > MOST_ENDS_IN_A_ROW:
            return None
        return 0.0 if self.ends_in_a_row == 1 else FIRST_WAIT_S * 2.0 ** (self.ends_in_a_row - 2)


@dataclass(frozen=True, slots=True)
class Worker:
    """The process, and our end of its message socket. The process ends when that socket is closed."""

    messages: socket.socket
    process: subprocess.Popen[bytes]


class PacedSender:
    """The sending process. Created by `running_paced_sender`. Any thread may call it; only `close` blocks.

    *Ownership*: it owns a thread that restarts the process; `close` ends both.
    """

    def __init__(self, worker: Worker) -> None:
        self._worker: Worker | None = worker
        self._numbers = itertools.count(1)
        self._lines: dict[int, PacedLine] = {}
        # Held for one message at most, or while all lines are registered with a new process.
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._outage: Outage | None = None
        self._keeper = threading.Thread(target=self._keep, args=(worker,), name="paced-sender-keeper", daemon=True)
        self._keeper.start()

    @property
    def alive(self) -> bool:
        return self._worker is not None

    @property
    def outage(self) -> Outage | None:
        """When the process ended and when it will be restarted; None while it runs."""
        return self._outage

    def line(self, sock: socket.socket) -> PacedLine:
        """Register a connected UDP socket; return the line that sends through it."""
        line = PacedLine(self, next(self._numbers), sock)
        with self._lock:
            self._lines[line.number] = line
            self._lend(line)
        return line

    def give_back(self, line: PacedLine) -> None:
        """Unregister `line`; datagrams that wait for it are not sent."""
        with self._lock:
            self._lines.pop(line.number, None)
            self._tell(process.HEADER.pack(process.CLOSE, line.number, 0.0))

    def send(self, line: int, at: float, datagram: bytes) -> None:
        """Pass a datagram to the process. Never blocks; a datagram that the process cannot take is lost."""
        with self._lock:
            self._tell(process.HEADER.pack(process.SEND, line, at) + datagram)

    def close(self) -> None:
        """End the process. Datagrams that it still holds are not sent."""
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

    def _lend(self, line: PacedLine) -> None:
        message = process.HEADER.pack(process.OPEN, line.number, 0.0)
        try:
            if self._worker is not None:
                socket.send_fds(self._worker.messages, [message], [line.sock.fileno()])
        except OSError as error:
            if error.errno == errno.EBADF:
                # The socket was closed while it was being passed on. Only its own connection is over.
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
        """Kill a process that ended or is stuck. A stuck one would later send seconds of old sound at once."""
        worker, self._worker = self._worker, None
        assert worker is not None, "something was sent to it"
        _log.error("paced_sender_lost", error_class=type(error).__name__)
        worker.process.kill()

    # -- the thread that keeps it ----------------------------------------------------------------------------

    def _keep(self, worker: Worker) -> None:
        """Restart the process whenever it ends, until `close` or too many ends."""
        restarts = Restarts()
        while True:
            begun = time.monotonic()
            worker.process.wait()
            if self._closing.is_set():
                return
            with self._lock:
                if self._worker is worker:
                    self._worker = None
                    _log.error("paced_sender_lost", status=worker.process.returncode)
            worker.messages.close()
            again = self._start_again(restarts, time.monotonic() - begun)
            if again is None:
                return
            worker = again

    def _start_again(self, restarts: Restarts, lived_s: float) -> Worker | None:
        """Restart the process with all lines; return None if it is given up or closing."""
        since = time.monotonic()
        while (wait_s := restarts.wait_s(lived_s)) is not None:
            self._outage = Outage(since, since + wait_s, VoiceError(ENDED))
            if self._closing.wait(wait_s):
                return None
            worker = _started()
            if worker is not None:
                return worker if self._put_in(worker) else None
            lived_s = 0.0
        self._outage = Outage(since, None, VoiceError(GIVEN_UP))
        _log.error("paced_sender_given_up", reason="it_ended_too_often")
        return None

    def _put_in(self, worker: Worker) -> bool:
        """Switch to a new process; return False if `close` was called."""
        with self._lock:
            wanted = not self._closing.is_set()
            if wanted:
                # In this order, because `alive` is asked without the lock.
                self._outage, self._worker = None, worker
                for line in self._lines.values():
                    self._lend(line)
        if wanted:
            _log.warning("paced_sender_started_again")
        else:
            worker.messages.close()
            worker.process.wait()
        return wanted


class PacedLine:
    """One room's registered socket. Created by `PacedSender.line`; close it together with its connection."""

    def __init__(self, paced_sender: PacedSender, number: int, sock: socket.socket) -> None:
        self.sock = sock
        self.number = number
        self._paced_sender = paced_sender

    def send(self, datagram: bytes, *, at: float) -> None:
        """Send `datagram` at `at` (monotonic seconds), or now if that time has passed."""
        self._paced_sender.send(self.number, at, datagram)

    def close(self) -> None:
        """Unregister the socket; datagrams that still wait are not sent."""
        self._paced_sender.give_back(self)


@contextmanager
def running_paced_sender() -> Iterator[PacedSender | None]:
    """Run the process; yield None if the system does not support it or it does not start."""
    worker = _started()
    if worker is None:
        yield None
        return
    paced_sender = PacedSender(worker)
    try:
        yield paced_sender
    finally:
        paced_sender.close()


def _started() -> Worker | None:
    if sys.platform != "linux":
        # Only Linux has local SOCK_SEQPACKET sockets that report when the other end is gone.
        return None
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        try:
            worker = subprocess.Popen(  # noqa: S603 - our own file and our own Python
                [sys.executable, "-I", "-S", process.__file__, str(theirs.fileno())],
                pass_fds=(theirs.fileno(),),
                # It needs nothing of the environment, which holds the bot's token and keys. Some Pythons need this one
                # variable to find their own library.
                env={name: os.environ[name] for name in _INHERITED if name in os.environ},
                stdin=subprocess.DEVNULL,
                # Ctrl-C in a terminal must not reach this process: the bot still sends its last words.
                start_new_session=True,
            )
        except OSError as error:
            ours.close()
            _log.warning("paced_sender_not_started", error_class=type(error).__name__)
            return None
    ours.setblocking(False)
    return Worker(ours, worker)
