"""Where a gateway process listens for the processes of its rooms."""

from __future__ import annotations

from ipaddress import ip_address
from typing import Self

from bot.errors import SetupError
from bot.network_address import NetworkAddress
from bot.remote.link.hello import ROOM_PATH
from bot.texts.text import Text

# For processes on the gateway process's own machine.
LOOPBACK = "127.0.0.1"
NO_ADDRESS = Text("“{text}” is not an address. Give it as HOST:PORT, for example 10.0.0.1:8572.")


class RoomsAddress(NetworkAddress):
    """`port`: 0 is a free one, for who listens."""

    __slots__ = ()

    @classmethod
    def parsed(cls, text: str) -> Self:
        """Return what HOST:PORT or [IPv6]:PORT means. Raises `SetupError`."""
        try:
            return super().parsed(text)
        except ValueError as error:
            raise SetupError(NO_ADDRESS.fill(text=text)) from error

    @property
    def is_everywhere(self) -> bool:
        """Return whether this means all addresses of who listens, and so none at which others reach it."""
        try:
            return ip_address(self.host).is_unspecified
        except ValueError:
            # A name.
            return False

    def url(self, *, encrypted: bool = True) -> str:
        """Return where a room's process connects to."""
        return f"{'wss' if encrypted else 'ws'}://{self}{ROOM_PATH}"
