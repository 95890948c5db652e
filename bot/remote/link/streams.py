"""Websockets that a room's process opens besides its link, for what is too large for the link.

A picture of a screen takes a second on a slow line. On the link it would delay what must not wait: op 4, an opt-out,
and the heartbeat. A connection of its own delays nothing else, and carries bytes as they are.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from aiohttp import web

    Serve = Callable[[web.WebSocketResponse], Awaitable[None]]

STREAM_PATH: Final = "/stream"
# The header with the ticket.
TICKET: Final = "Roomtone-Ticket"
# A room's process sends single words.
MOST_WORD_BYTES: Final = 4_096


class Streams:
    """The websockets that the gateway process waits for. A ticket tells which one a process opens; it may be opened
    again when it was lost.
    """

    def __init__(self) -> None:
        self._expected: dict[str, Serve] = {}

    def expect(self, ticket: str, serve: Serve) -> None:
        """Let a websocket be opened with a ticket of `new_ticket`; `serve` has it until it returns."""
        self._expected[ticket] = serve

    def forget(self, ticket: str) -> None:
        """Let it be opened no more."""
        self._expected.pop(ticket, None)

    def find(self, ticket: str) -> Serve | None:
        """Return what serves the websocket of a ticket."""
        return self._expected.get(ticket)


def new_ticket() -> str:
    """Return a ticket that nobody guesses."""
    return secrets.token_urlsafe(16)
