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


@dataclass(frozen=True, slots=True)
class Site:
    """Where the pages are for the outside: `origin` as browsers send it, `host` with its port where it has one."""

    origin: str
    host: str

    @classmethod
    def of(cls, public_url: str, *, port: int) -> Site:
        """Return the site of an address; empty means this machine."""
        parts = urlsplit(public_url or f"http://localhost:{port}")
        scheme = parts.scheme.casefold()
        host = (parts.hostname or "").casefold()
        host = f"[{host}]" if ":" in host else host
        default = {"http": 80, "https": 443}.get(scheme)
        if parts.port is not None and parts.port != default:
            host = f"{host}:{parts.port}"
        return cls(f"{scheme}://{host}", host)

    @property
    def socket_origin(self) -> str:
        """Return the origin of its web sockets, which not every browser takes to be `'self'`."""
        return ("wss://" if self.origin.startswith("https:") else "ws://") + self.host

    def admits(self, origin: str | None) -> bool:
        """Return whether a page of that origin may talk to us: our own alone, whatever the request says of its host."""
        return origin is not None and origin.casefold() == self.origin


def security_headers(site: Site) -> dict[str, str]:
    """Return what every answer carries."""
    policy = {
        "default-src": "'none'",
        "script-src": "'self'",
        "style-src": "'self'",
        "img-src": "'self'",
        "connect-src": f"'self' {site.socket_origin}",
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


class Proxies:
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
