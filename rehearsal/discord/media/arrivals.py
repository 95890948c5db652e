"""Records when voice packets reached the media server, to measure how evenly a client sends.

The times are the kernel's timestamps, because a busy server reads packets some time after they arrived.
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

# The ioctl from linux/sockios.h that returns when the last datagram read was received, as a struct timespec.
_SIOCGSTAMPNS = 0x8907
_TIMESPEC = struct.Struct("@ll")


@dataclass(frozen=True, slots=True)
class PacketArrival:
    """The arrival of one voice packet from `user_id`.

    `at`: seconds of the wall clock. `silence`: the packet is one of the silence frames that end a talkspurt.
    """

    user_id: int
    sequence: int
    silence: bool
    at: float


# Called on the media server's loop with each packet that could be decrypted.
ArrivalCallback: TypeAlias = Callable[[PacketArrival], None]


def arrived_at(sock: socket.socket | None) -> float:
    """Return the wall-clock time at which the datagram last read from `sock` arrived. Except on Linux, return now."""
    if sys.platform == "linux" and sock is not None:
        try:
            seconds, nanoseconds = _TIMESPEC.unpack(fcntl.ioctl(sock.fileno(), _SIOCGSTAMPNS, bytes(_TIMESPEC.size)))
        except OSError:
            # The kernel begins to record times at the first such request, so the first request fails.
            return time.time()
        return float(seconds + nanoseconds / 1e9)
    return time.time()
