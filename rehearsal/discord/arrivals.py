"""When voice packets reached the media server, by the kernel's timestamps: a busy server reads them late.

Used to measure how evenly a client sends.
"""

from __future__ import annotations

import struct
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if sys.platform == "linux":
    import fcntl

if TYPE_CHECKING:
    import socket

# linux/sockios.h: the time of the datagram that was read last, as a struct timespec.
_SIOCGSTAMPNS = 0x8907
_TIMESPEC = struct.Struct("@ll")


@dataclass(frozen=True, slots=True)
class PacketArrival:
    """One voice packet of `user_id`. `at`: seconds of the wall clock; `silence`: it only ends a talkspurt."""

    user_id: int
    sequence: int
    silence: bool
    at: float


# Called on the media server's loop with each packet that could be decrypted.
ArrivalCallback: TypeAlias = Callable[[PacketArrival], None]


def arrived_at(sock: socket.socket | None) -> float:
    """Return when the datagram last read from `sock` arrived (wall clock); on other systems than Linux, now."""
    if sys.platform == "linux" and sock is not None:
        try:
            seconds, nanoseconds = _TIMESPEC.unpack(fcntl.ioctl(sock.fileno(), _SIOCGSTAMPNS, bytes(_TIMESPEC.size)))
        except OSError:
            # The kernel starts to record times with the first request.
            return time.time()
        return float(seconds + nanoseconds / 1e9)
    return time.time()
