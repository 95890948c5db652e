"""What is read of this machine's processes."""

from __future__ import annotations

import os
import socket
import sys

import pytest

from benchmarks.cluster.processes import networks_of


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_open_connections_tell_what_a_process_does() -> None:
    """A port that only listens is none; a UDP socket counts whether or not it has a peer."""
    me = os.getpid()
    before = networks_of([me])[me]
    with socket.create_server(("127.0.0.1", 0)) as server:
        assert networks_of([me])[me] == before
        with socket.create_connection(server.getsockname()):
            assert "tcp" in networks_of([me])[me]
    with socket.socket(type=socket.SOCK_DGRAM) as udp:
        udp.bind(("127.0.0.1", 0))
        assert "udp" in networks_of([me])[me]
        udp.connect(("127.0.0.1", 9))
        assert "udp" in networks_of([me])[me]
    assert networks_of([me])[me] == before
