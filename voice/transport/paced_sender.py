"""Sends finished datagrams on time from a small separate process, however busy this one is.

Threads share one interpreter lock, so a due frame waits for other threads: with ten rooms beside a busy event loop the
jitter's P99 was 4 to 9 ms; with one process for all rooms it was 0.6 ms. The process needs a Unix socket that can pass
file descriptors. Where that is missing, or once the process has ended, each room sends its own datagrams. Those that
the process held, 40 ms at most, are lost.
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
from typing import TYPE_CHECKING

import structlog

from voice.circuit_breaker import Outage
from voice.errors import VoiceError
from voice.transport import paced_sender_process as wire

if TYPE_CHECKING:
    from collections.abc import Iterator

_log = structlog.get_logger()

END_TIMEOUT_S = 2.0
_INHERITED = ("LD_LIBRARY_PATH",)

ENDED = "Something outside stopped it. Look in the system's log for a limit on memory or on processes. Then restart me."


class PacedSender:
    """The sending process. Created by `running_paced_sender`. Any thread may call it; only `close` blocks.

    `messages`: our end of its socket. The process ends when that is closed.
    """

    def __init__(self, messages: socket.socket, process: subprocess.Popen[bytes]) -> None:
        # None: the process has ended, or ends.
        self._messages: socket.socket | None = messages
        self._process = process
        self._numbers = itertools.count(1)
        # Held for one message at most.
        self._lock = threading.Lock()
        # Since when the process is known to have ended; None while it runs.
        self.outage: Outage | None = None

    @property
    def alive(self) -> bool:
        return self._messages is not None

    def lend(self, sock: socket.socket) -> int:
        """Register a connected UDP socket; return the number of the line that sends through it."""
        line = next(self._numbers)
        with self._lock:
            self._lend(line, sock)
        return line

    def give_back(self, line: int) -> None:
        """Unregister the socket of `line`; datagrams that wait for it are not sent."""
        with self._lock:
            self._post(wire.HEADER.pack(wire.CLOSE, line, 0.0))

    def send(self, line: int, datagram: bytes, *, at: float) -> None:
        """Send a datagram over a line at `at` (monotonic seconds), or now if that time has passed. Never blocks; what
        the process cannot take is lost.
        """
        with self._lock:
            self._post(wire.HEADER.pack(wire.SEND, line, at) + datagram)

    def close(self) -> None:
        """End the process. Datagrams that it still holds are not sent."""
        with self._lock:
            messages, self._messages = self._messages, None
        if messages is not None:
            messages.close()
        try:
            self._process.wait(END_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(END_TIMEOUT_S)

    # -- with the lock held ----------------------------------------------------------------------------------

    def _lend(self, line: int, sock: socket.socket) -> None:
        message = wire.HEADER.pack(wire.OPEN, line, 0.0)
        try:
            if self._messages is not None:
                socket.send_fds(self._messages, [message], [sock.fileno()])
        except OSError as error:
            if error.errno == errno.EBADF:
                # The socket was closed while it was being passed on. Only its own connection is over.
                _log.debug("closed_socket_not_lent")
                return
            self._lose(error)

    def _post(self, message: bytes) -> None:
        try:
            if self._messages is not None:
                self._messages.send(message)
        except OSError as error:
            self._lose(error)

    def _lose(self, error: OSError) -> None:
        """Kill a process that ended or is stuck. A stuck one would later send seconds of old sound at once."""
        messages, self._messages = self._messages, None
        assert messages is not None, "something was sent to it"
        _log.error("paced_sender_lost", error_class=type(error).__name__)
        self._process.kill()
        messages.close()
        self.outage = Outage(time.monotonic(), None, VoiceError(ENDED))


@contextmanager
def running_paced_sender() -> Iterator[PacedSender | None]:
    """Run the process; yield None if the system does not support it or it does not start."""
    paced_sender = _started()
    if paced_sender is None:
        yield None
        return
    try:
        yield paced_sender
    finally:
        paced_sender.close()


def _started() -> PacedSender | None:
    if sys.platform != "linux":
        # Only Linux has local SOCK_SEQPACKET sockets that report when the other end is gone.
        return None
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        try:
            started = subprocess.Popen(  # noqa: S603 - our own file and our own Python
                [sys.executable, "-I", "-S", wire.__file__, str(theirs.fileno())],
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
    return PacedSender(ours, started)
