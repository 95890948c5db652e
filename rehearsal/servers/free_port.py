"""Finds a port for a program that has to be told its port before it listens.

Between the finding and the listening somebody else may take the port. Most do not choose theirs: clients, and servers
that ask for any, get one out of a range of the system's. So this one lies below that range.
"""

from __future__ import annotations

import random
import socket
from pathlib import Path

_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
# What most systems begin with, should it not say.
_USUAL_FIRST = 32_768
# Below it are the ports of well-known services.
_LOWEST = 10_000


def free_port() -> int:
    """Return a port of the loopback on which nobody listens now, and which nobody gets by chance. Raises `OSError` if
    there is none.
    """
    candidates = list(range(_LOWEST, max(_LOWEST, _first_given_out())))
    # Not the random numbers of the process, which tests begin anew.
    random.SystemRandom().shuffle(candidates)
    # 0: any, where the system gives out all of them.
    for port in (*candidates, 0):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            found: int = probe.getsockname()[1]
            return found
    raise OSError("no port is free")


def _first_given_out() -> int:
    """Return the first port of those that the system gives out."""
    try:
        return int(_RANGE.read_text("ascii").split()[0])
    except (OSError, ValueError):
        return _USUAL_FIRST
