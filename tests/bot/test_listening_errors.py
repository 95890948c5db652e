"""Why a port could not be opened is told without its address."""

from __future__ import annotations

import errno
import os
import socket

import pytest

from bot.errors import why_not_listening


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (
            OSError(errno.EADDRINUSE, "error while attempting to bind on address ('127.0.0.1', 80): in use"),
            os.strerror(errno.EADDRINUSE),
        ),
        (OSError("could not bind on any address out of [('10.255.1.2', 80)]"), os.strerror(errno.EADDRNOTAVAIL)),
        (socket.gaierror(socket.EAI_NONAME, "Name or service not known"), "Name or service not known"),
        # On some systems these numbers are not negative.
        (socket.gaierror(8, "nodename nor servname provided"), "nodename nor servname provided"),
    ],
)
def test_the_reason_quotes_no_address(error: OSError, told: str) -> None:
    assert why_not_listening(error) == told
