"""Finds a port for a program that has to be told its port before it listens.

Between the finding and the listening somebody else may take the port. Most do not choose theirs: clients, and servers
that ask for any, get one out of a range of the system's. So this one lies below that range.
"""

from __future__ import annotations

import random
import socket

# Between the ports of well-known services and those that Linux gives out.
_LOWEST, _HIGHEST = 10_000, 32_767


def free_port() -> int:
    """Return a port of the loopback on which nobody listens now. Raises `OSError` if there is none."""
    # Not the random numbers of the process, which tests begin anew.
    for port in random.SystemRandom().sample(range(_LOWEST, _HIGHEST), k=100):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)):
                return port
    raise OSError("no port is free")
