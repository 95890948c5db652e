"""Reads where another machine is reached: HOST:PORT."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv6Address
from typing import Final, Self

_HIGHEST_PORT: Final = 65_535
# Parts of a URL, which somebody may have pasted.
_NOT_IN_A_HOST: Final = frozenset("/@?#[]")


@dataclass(frozen=True, slots=True)
class NetworkAddress:
    """`host`: a name or an IP address, without brackets. `port`: 1 to 65535."""

    host: str
    port: int

    @classmethod
    def parsed(cls, text: str) -> Self:
        """Return what HOST:PORT or [IPv6]:PORT means, with blanks around it or none. An IPv6 address needs no brackets,
        because the port is never left out. Raises `ValueError`.
        """
        host, _, port = text.strip().rpartition(":")
        if not (port.isdecimal() and port.isascii() and 0 < int(port) <= _HIGHEST_PORT):
            raise ValueError(f"{text!r} has no port")
        if host.startswith("[") and host.endswith("]"):
            return cls(_ip_v6(host[1:-1]), int(port))
        return cls(_ip_v6(host) if ":" in host else _name(host), int(port))

    def __str__(self) -> str:
        """Return what `parsed` understands and a URL takes."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def _ip_v6(text: str) -> str:
    """Return an IPv6 address as it is. Raises `ValueError`."""
    IPv6Address(text)
    return text


def _name(text: str) -> str:
    """Return a name or an IPv4 address as it is. Raises `ValueError`."""
    if not text or not text.isprintable() or " " in text or _NOT_IN_A_HOST & set(text):
        raise ValueError(f"{text!r} is no host")
    # Looking up what is no name for the system raises no `OSError`, which is what its callers expect.
    text.encode("idna")
    return text
