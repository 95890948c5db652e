"""The system's receive buffer of a UDP socket: what waits there while the reader thread is busy.

A hundred people who speak at once are 5,000 datagrams a second. The usual buffer holds 50 ms of that, and what does not
fit is dropped without a word. The size that was granted, what was dropped, and when a datagram came can be asked for.
"""

from __future__ import annotations

import socket
import struct
import sys
from contextlib import suppress

import structlog

_log = structlog.get_logger()

# What Linux counts for a datagram with 20 ms of speech, in units of what was asked for.
DATAGRAM_BYTES = 640
# Half a second of 200 people and more. It costs nothing while it is empty.
WANTED_BYTES = 4 * 1024 * 1024
# Less than this holds less than a fifth of a second of 100 people.
SMALL_BYTES = 1024 * 1024

# Linux, asm-generic/socket.h and linux/sock_diag.h: nine numbers of 32 bits, of which the last counts the dropped
# datagrams.
_SO_MEMINFO = 55
_MEMINFO = struct.Struct("@9I")
# Linux, asm-generic/socket.h and linux/time_types.h: when a datagram came, as a `timespec` of the wall clock.
_SO_TIMESTAMPNS = 35
_TIMESPEC = struct.Struct("@ll")


def prepare(sock: socket.socket) -> None:
    """Let the system note when each datagram comes, and keep many. A small buffer is told in the log."""
    note_arrivals(sock)
    size = enlarge(sock)
    if size < SMALL_BYTES:
        remedy = f"On the machine itself (not in a container): `sudo sysctl -w net.core.rmem_max={WANTED_BYTES}`."
        _log.warning("receive_buffer_small", granted_bytes=size, wanted_bytes=WANTED_BYTES, remedy=remedy)


def enlarge(sock: socket.socket) -> int:
    """Ask for `WANTED_BYTES` and return how many bytes the system granted."""
    with suppress(OSError):
        # macOS refuses what Linux would cut down to its limit.
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, WANTED_BYTES)
    size = sock.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF)
    # Linux keeps and reports twice what was asked for, because its own records count too.
    return size // 2 if sys.platform == "linux" else size


def note_arrivals(sock: socket.socket) -> None:
    """Ask the system to note when each datagram comes. Raises nothing."""
    if sys.platform == "linux":
        with suppress(OSError):
            sock.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)


def receive(sock: socket.socket, most_bytes: int) -> tuple[bytes, int | None]:
    """Return the next datagram, and the nanosecond of the wall clock in which it came; None if the system does not
    tell. Raises as `recv` does, and takes a few microseconds more.
    """
    datagram, notes, _, _ = sock.recvmsg(most_bytes, socket.CMSG_SPACE(_TIMESPEC.size))
    for level, kind, note in notes:
        if (level, kind, len(note)) == (socket.SOL_SOCKET, _SO_TIMESTAMPNS, _TIMESPEC.size):
            seconds, nanoseconds = _TIMESPEC.unpack(note)
            return datagram, seconds * 1_000_000_000 + nanoseconds
    return datagram, None


def dropped(sock: socket.socket) -> int:
    """Return how many datagrams the system dropped since the socket was made. 0 if it does not tell."""
    if sys.platform != "linux":
        return 0
    try:
        return int(_MEMINFO.unpack(sock.getsockopt(socket.SOL_SOCKET, _SO_MEMINFO, _MEMINFO.size))[8])
    except (OSError, struct.error):
        return 0
