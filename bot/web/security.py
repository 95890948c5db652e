"""Security of the web pages: the origin check, client addresses behind proxies, and response headers. Pure.

The pages may be on the open internet behind a reverse proxy.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from yarl import URL

if TYPE_CHECKING:
    from collections.abc import Sequence

_Network = ipaddress.IPv4Network | ipaddress.IPv6Network


# Names of the browser's own machine. No foreign page can have them as its origin.
_LOOPBACK: Final = ("localhost", "127.0.0.1", "[::1]")


@dataclass(frozen=True, slots=True)
class Site:
    """The public address of the pages. `origin`: as browsers send it. `host`: with the port unless it is the default.

    `aliases`: other names of the same host, if it is the local machine.
    """

    origin: str
    host: str
    aliases: tuple[str, ...] = ()

    @classmethod
    def of(cls, public_url: str, *, port: int) -> Site:
        """Return the site of a public URL; an empty one means the local machine."""
        address = URL(public_url or f"http://localhost:{port}")
        scheme = address.scheme
        # In ASCII, as browsers send a name with other letters (`xn--…`).
        host = (address.raw_host or "").casefold()
        host = f"[{host}]" if ":" in host else host
        default = {"http": 80, "https": 443}.get(scheme)
        behind = "" if address.explicit_port in (None, default) else f":{address.explicit_port}"
        aliases = tuple(f"{name}{behind}" for name in _LOOPBACK if name != host) if host in _LOOPBACK else ()
        return cls(f"{scheme}://{host}{behind}", f"{host}{behind}", aliases)

    @property
    def is_secure(self) -> bool:
        return self.origin.startswith("https:")

    @property
    def socket_origins(self) -> tuple[str, ...]:
        """Return the origins of the site's web sockets, which some browsers do not count as `'self'`."""
        scheme = "wss://" if self.is_secure else "ws://"
        # A policy can't contain an IPv6 address; for those only `'self'` applies.
        return tuple(scheme + host for host in (self.host, *self.aliases) if not host.startswith("["))

    def admits(self, origin: str | None) -> bool:
        """Return whether a page of this origin may open the web socket: only our own, whatever the Host header says."""
        scheme = self.origin.partition("//")[0]
        own = {self.origin, *(f"{scheme}//{host}" for host in self.aliases)}
        return origin is not None and origin.casefold() in own


def security_headers(site: Site) -> dict[str, str]:
    """Return the headers of every response."""
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
        # The policy in share.js, which allows one URL.
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
        # Without the camera: Chromium complains of a page that captures a screen and may not use it.
        "Permissions-Policy": "display-capture=(self), microphone=(), geolocation=(), usb=(), serial=()",
        "X-Robots-Tag": "noindex, nofollow",
    }


FORWARDED_FOR: Final = "X-Forwarded-For"
# Providers give one household at least this much of IPv6.
_IPV6_HOUSEHOLD_BITS: Final = 64


@dataclass(frozen=True, slots=True)
class ClientAddress:
    """Where a request comes from. `vouched`: a trusted proxy says so, so people elsewhere have other addresses."""

    address: str
    vouched: bool

    @property
    def group(self) -> _Network | None:
        """Return the household of a vouched address, whose sockets are counted together; else None."""
        if not self.vouched:
            return None
        ip = ipaddress.ip_address(self.address)
        bits = ip.max_prefixlen if ip.version == 4 else _IPV6_HOUSEHOLD_BITS
        return ipaddress.ip_network(f"{ip}/{bits}", strict=False)


class TrustedProxies:
    """The reverse proxies whose X-Forwarded-For is trusted. Raises ValueError for invalid addresses."""

    def __init__(self, trusted: Sequence[str]) -> None:
        self._networks: tuple[_Network, ...] = tuple(ipaddress.ip_network(each, strict=False) for each in trusted)

    def client(self, peer: str, forwarded_for: Sequence[str]) -> ClientAddress:
        """Return the client's address. `peer`: address of the connection. `forwarded_for`: values of the header.

        Each proxy appends its peer, so the header is read from its end, as long as the addresses are trusted proxies.
        """
        hops = [hop.strip() for value in forwarded_for for hop in value.split(",")]
        client = peer
        while self._trusts(client) and hops:
            hop = _address(hops.pop())
            if hop is None:
                break
            client = hop
        return ClientAddress(client, vouched=client != peer and not self._trusts(client))

    def _trusts(self, address: str) -> bool:
        parsed = _address(address)
        if parsed is None:
            return False
        ip = ipaddress.ip_address(parsed)
        return any(ip in network for network in self._networks if ip.version == network.version)


def _address(text: str) -> str | None:
    """Return an IP address in its shortest form, without a port, or None if it is invalid."""
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
