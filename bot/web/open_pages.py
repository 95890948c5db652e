"""Limits on the connections of the web server: which may be opened, and which make room for others. Pure.

An address counts only if a trusted proxy vouches for it, because behind any other proxy all people have one address.
Everywhere else the link counts. Connections that have shown no valid link make room for newer ones, so silent ones lock
nobody out.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Hashable

    from bot.web.security import ClientAddress

MAX_CONNECTIONS: Final = 200
# A household behind one address: each person has one page, and a page that reconnects has two for a moment.
MAX_SOCKETS_PER_CLIENT: Final = 12
# A page that reconnects leaves its earlier socket, which may take some seconds to end.
MAX_SOCKETS_PER_LINK: Final = 3


class Closable(Protocol):
    """A connection that can be cut off."""

    @property
    def is_open(self) -> bool:
        """Return whether it still holds a socket. One that is closing does, for as long as its reader likes."""

    def cut(self) -> None:
        """Close it at once, without waiting for the other side."""


ConnectionT = TypeVar("ConnectionT", bound=Closable)


@dataclass(slots=True)
class _Page:
    """An open web socket. `group`: the address that a trusted proxy vouches for, or None. `link`: once admitted."""

    group: Hashable | None
    link: str = ""


class OpenPages(Generic[ConnectionT]):
    """The connections of one server. Not thread-safe."""

    def __init__(self) -> None:
        # Both in the order in which they were opened.
        self._connections: dict[ConnectionT, None] = {}
        self._pages: dict[ConnectionT, _Page] = {}

    def connected(self, connection: ConnectionT) -> None:
        """Take a new connection. If there are too many, cut off the oldest one that has shown no valid link."""
        # Some have ended since the last call.
        self._connections = {each: None for each in self._connections if each.is_open}
        self._connections[connection] = None
        if len(self._connections) > MAX_CONNECTIONS:
            silent = (each for each in self._connections if each not in self._pages or not self._pages[each].link)
            self._cut(next(silent, connection))

    def has_room(self, client: ClientAddress) -> bool:
        """Return whether this client may open one more web socket."""
        group = client.group
        return group is None or Counter(page.group for page in self._pages.values())[group] < MAX_SOCKETS_PER_CLIENT

    def opened(self, connection: ConnectionT, client: ClientAddress) -> None:
        """Note that a connection has become a web socket."""
        self._pages[connection] = _Page(client.group)

    def admitted(self, connection: ConnectionT, link: str) -> None:
        """Note that the page has shown a valid link. Earlier sockets of the link are cut off if they are too many."""
        self._pages[connection].link = link
        same = [each for each, page in self._pages.items() if page.link == link and each is not connection]
        for earlier in same[: max(0, len(same) + 1 - MAX_SOCKETS_PER_LINK)]:
            earlier.cut()

    def closed(self, connection: ConnectionT) -> None:
        """Note that a web socket has ended."""
        del self._pages[connection]

    def cut_all(self) -> None:
        """Cut off every connection."""
        for connection in list(self._connections):
            self._cut(connection)

    def _cut(self, connection: ConnectionT) -> None:
        del self._connections[connection]
        connection.cut()
