"""Sends ready datagrams at their times, whatever keeps this process's interpreter busy: in a small process of its own.

Threads share one interpreter, and a frame that is due waits until another thread gives it up: with ten rooms beside a
busy event loop the jitter's P99 was 4 to 9 ms, with one process for all of them 0.6 ms. It needs Unix's way to lend a
socket to another process; where that is missing, or the process is gone, rooms send for themselves.
"""

from __future__ import annotations

import errno
import itertools
import socket
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

import structlog

from voice.transport import metronome_process as process

if TYPE_CHECKING:
    from collections.abc import Iterator

_log = structlog.get_logger()

_END_TIMEOUT_S = 2.0


class Metronome:
    """The process that sends. Lent by `running_metronome`; every call may come from any thread, and none blocks."""

    def __init__(self, messages: socket.socket, worker: subprocess.Popen[bytes]) -> None:
        self._messages = messages
        self._worker = worker
        self._numbers = itertools.count(1)
        self._gone = False

    @property
    def alive(self) -> bool:
        """Return whether what is handed over is sent."""
        return not self._gone

    def line(self, sock: socket.socket) -> Line:
        """Lend a connected UDP socket; what is sent over the line leaves through it."""
        return Line(self, next(self._numbers), sock)

    def tell(self, kind: int, line: int, at: float = 0.0, datagram: bytes = b"", *, lend: int | None = None) -> None:
        """Hand a message over. What cannot be handed over is lost, and nobody is waited for."""
        if self._gone:
            return
        message = process.HEADER.pack(kind, line, at) + datagram
        try:
            if lend is None:
                self._messages.send(message)
            else:
                socket.send_fds(self._messages, [message], [lend])
        except OSError as error:
            if error.errno == errno.EBADF and lend is not None:
                # The socket was closed while it was being lent: its connection is over, and nothing else.
                _log.debug("closed_socket_not_lent")
                return
            # Gone, or stuck with some seconds of sound before it, which must not come later all at once.
            self._gone = True
            self._worker.kill()
            _log.error("metronome_lost", error_class=type(error).__name__)

    def close(self) -> None:
        """End the process. What it still holds is not sent."""
        self._gone = True
        self._messages.close()
        try:
            self._worker.wait(_END_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._worker.kill()
            self._worker.wait()


class Line:
    """One room's way out: a lent socket. Made by `Metronome.line`; closed with the connection it belongs to."""

    def __init__(self, metronome: Metronome, number: int, sock: socket.socket) -> None:
        self.sock = sock
        self._metronome = metronome
        self._number = number
        self._metronome.tell(process.OPEN, number, lend=sock.fileno())

    def send(self, datagram: bytes, *, at: float) -> None:
        """Send `datagram` at `at` (monotonic seconds), or now if that is over."""
        self._metronome.tell(process.SEND, self._number, at, datagram)

    def close(self) -> None:
        """Give the socket back; what is still to be sent over it is not."""
        self._metronome.tell(process.CLOSE, self._number)


@contextmanager
def running_metronome() -> Iterator[Metronome | None]:
    """Start the process and lend it; None where this system has no such thing, or the process does not start."""
    metronome = _started()
    try:
        yield metronome
    finally:
        if metronome is not None:
            metronome.close()


def _started() -> Metronome | None:
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
    return Metronome(ours, worker)
