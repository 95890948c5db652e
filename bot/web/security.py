"""What a request must be before it is answered, and what every answer says to the browser. Pure.

The pages stand on the open internet behind nothing but a reverse proxy: whose address counts, which page may talk to
us, and what a browser may do with ours is decided here.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Sequence

_Network = ipaddress.IPv4Network | ipaddress.IPv6Network


class ProxyError(ValueError):
    """A trusted proxy is neither an address nor a network."""


# What browsers call the machine they run on. Nobody else's page can come from there.
_LOOPBACK: Final = ("localhost", "127.0.0.1", "[::1]")


@dataclass(frozen=True, slots=True)
class Site:
    """Where the pages are for the outside: `origin` as browsers send it, `host` with its port where it has one.

    `aliases`: other hosts that are the same; this machine has several names, and people type the one they like.
    """

    origin: str
    host: str
    aliases: tuple[str, ...] = ()

    @classmethod
    def of(cls, public_url: str, *, port: int) -> Site:
        """Return the site of an address; empty means this machine."""
        parts = urlsplit(public_url or f"http://localhost:{port}")
        scheme = parts.scheme.casefold()
        host = (parts.hostname or "").casefold()
        host = f"[{host}]" if ":" in host else host
        default = {"http": 80, "https": 443}.get(scheme)
        behind = "" if parts.port is None or parts.port == default else f":{parts.port}"
        aliases = tuple(f"{name}{behind}" for name in _LOOPBACK if name != host) if host in _LOOPBACK else ()
        return cls(f"{scheme}://{host}{behind}", f"{host}{behind}", aliases)

    @property
    def socket_origins(self) -> tuple[str, ...]:
        """Return the origins of its web sockets, which not every browser takes to be `'self'`."""
        scheme = "wss://" if self.origin.startswith("https:") else "ws://"
        # A policy has no way to write an IPv6 address; who uses one has a browser for which `'self'` is enough.
        return tuple(scheme + host for host in (self.host, *self.aliases) if not host.startswith("["))

    def admits(self, origin: str | None) -> bool:
        """Return whether a page of that origin may talk to us: our own alone, whatever the request says of its host."""
        scheme = self.origin.partition("//")[0]
        own = {self.origin, *(f"{scheme}//{host}" for host in self.aliases)}
        return origin is not None and origin.casefold() in own


def security_headers(site: Site) -> dict[str, str]:
    """Return what every answer carries."""
    policy = {
        "default-src": "'none'",
        "script-src": "'self'",
        "style-src": "'self'",
        "img-src": "'self'",
        "connect-src": " ".join(("'self'", *site.socket_origins)),
        "base-uri": "'none'",
        "form-action": "'none'",
        "frame-ancestors": "'none'",
        "worker-src": "'self'",
        "require-trusted-types-for": "'script'",
        # The one policy of share.js, which knows one address.
        "trusted-types": "roomtone",
    }
    return {
        "Content-Security-Policy": "; ".join(f"{name} {value}" for name, value in policy.items()),
        "Referrer-Policy": "no-referrer",
        "X-Content-Type-Options": "nosniff",
        "X-Frame-Options": "DENY",
        "Cache-Control": "no-store",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cross-Origin-Resource-Policy": "same-origin",
        "Permissions-Policy": "display-capture=(self), microphone=(), geolocation=(), usb=(), serial=()",
        "X-Robots-Tag": "noindex, nofollow",
    }


FORWARDED_FOR: Final = "X-Forwarded-For"


class TrustedProxies:
    """The reverse proxies whose word is believed. Raises `ProxyError` for what is no address."""

    def __init__(self, trusted: Sequence[str]) -> None:
        try:
            self._networks: tuple[_Network, ...] = tuple(ipaddress.ip_network(each, strict=False) for each in trusted)
        except ValueError as error:
            raise ProxyError(str(error)) from error

    def client(self, peer: str, forwarded_for: Sequence[str]) -> str:
        """Return whose request it is. `peer`: who is connected; `forwarded_for`: the header's values.

        Proxies append whom they heard, so it is read from its end, as far as each is one of ours.
        """
        hops = [hop.strip() for value in forwarded_for for hop in value.split(",")]
        client = peer
        while self._trusts(client) and hops:
            hop = _address(hops.pop())
            if hop is None:
                break
            client = hop
        return client

    def _trusts(self, address: str) -> bool:
        parsed = _address(address)
        if parsed is None:
            return False
        ip = ipaddress.ip_address(parsed)
        return any(ip in network for network in self._networks if ip.version == network.version)


def _address(text: str) -> str | None:
    """Return an address in its shortest form, without a port; None for what is none."""
    text = text.strip().strip('"')
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        ip = ipaddress.ip_address(text)
    except ValueError:
        return None
    mapped = ip.ipv4_mapped if isinstance(ip, ipaddress.IPv6Address) else None
    return str(mapped or ip)
