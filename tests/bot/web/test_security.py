"""The origin check, response headers, and client addresses behind proxies."""

from __future__ import annotations

import pytest

from bot.web.security import ClientAddress, Site, TrustedProxies, security_headers


@pytest.mark.parametrize(
    ("url", "origin", "sockets"),
    [
        ("", "http://localhost:8095", "ws://localhost:8095 ws://127.0.0.1:8095"),
        ("https://Watch.Example.org/", "https://watch.example.org", "wss://watch.example.org"),
        ("https://watch.example.org:443", "https://watch.example.org", "wss://watch.example.org"),
        ("https://watch.example.org:8443", "https://watch.example.org:8443", "wss://watch.example.org:8443"),
        ("http://127.0.0.1:80", "http://127.0.0.1", "ws://127.0.0.1 ws://localhost"),
        ("http://[::1]:8095", "http://[::1]:8095", "ws://localhost:8095 ws://127.0.0.1:8095"),
        ("https://Bücher.example:8443/", "https://xn--bcher-kva.example:8443", "wss://xn--bcher-kva.example:8443"),
        ("https://straße.example", "https://xn--strae-oqa.example", "wss://xn--strae-oqa.example"),
    ],
)
def test_a_site_is_what_browsers_call_it(url: str, origin: str, sockets: str) -> None:
    """The origin is in lower case, in ASCII and without the default port. The local machine has several names."""
    site = Site.of(url, port=8095)
    assert (site.origin, " ".join(site.socket_origins)) == (origin, sockets)


PUBLIC = "https://watch.example.org"


@pytest.mark.parametrize(
    ("url", "origin", "admitted"),
    [
        (PUBLIC, "https://watch.example.org", True),
        (PUBLIC, "https://WATCH.example.org", True),
        (PUBLIC, "http://watch.example.org", False),
        (PUBLIC, "https://watch.example.org.evil.net", False),
        (PUBLIC, "https://evil.net", False),
        (PUBLIC, "https://watch.example.org:444", False),
        (PUBLIC, "null", False),
        (PUBLIC, "", False),
        (PUBLIC, None, False),
        (PUBLIC, "http://localhost:8095", False),
        (PUBLIC, "http://127.0.0.1:8095", False),
        *(
            (url, origin, admitted)
            for url in ("", "http://localhost:8095", "http://127.0.0.1:8095", "http://[::1]:8095")
            for origin, admitted in (
                ("http://localhost:8095", True),
                ("http://127.0.0.1:8095", True),
                ("http://[::1]:8095", True),
                ("http://localhost:8096", False),
                ("https://localhost:8095", False),
                ("http://127.0.0.2:8095", False),
                ("http://localhost.evil.net:8095", False),
            )
        ),
    ],
)
def test_our_own_page_alone_may_talk_to_us(url: str, origin: str | None, admitted: bool) -> None:
    """A public site accepts its address alone, and not this machine. A local site accepts localhost, 127.0.0.1 and
    [::1], but no other port. The request's Host header is not used.
    """
    assert Site.of(url, port=8095).admits(origin) is admitted


def test_the_browser_is_forbidden_what_the_page_does_not_need() -> None:
    """The headers forbid foreign and inline scripts, and caching."""
    headers = security_headers(Site.of("https://watch.example.org", port=1))
    policy = headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self';" in policy
    assert "connect-src 'self' wss://watch.example.org;" in policy
    assert "unsafe" not in policy
    assert (headers["Referrer-Policy"], headers["Cache-Control"]) == ("no-referrer", "no-store")
    assert headers["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize(
    ("trusted", "peer", "forwarded", "client"),
    [
        ((), "203.0.113.9", ["198.51.100.1"], "203.0.113.9"),
        (("127.0.0.1",), "127.0.0.1", ["198.51.100.1"], "198.51.100.1"),
        (("127.0.0.1",), "127.0.0.1", [], "127.0.0.1"),
        # The client may have sent the first addresses itself, so the one from the nearest proxy counts.
        (("127.0.0.1",), "127.0.0.1", ["1.2.3.4, 198.51.100.1"], "198.51.100.1"),
        (("127.0.0.1", "10.0.0.0/8"), "127.0.0.1", ["1.2.3.4, 198.51.100.1, 10.1.2.3"], "198.51.100.1"),
        (("127.0.0.1", "10.0.0.0/8"), "127.0.0.1", ["198.51.100.1", "10.1.2.3"], "198.51.100.1"),
        (("127.0.0.1",), "127.0.0.1", ["nonsense"], "127.0.0.1"),
        (("127.0.0.1",), "::ffff:127.0.0.1", ["198.51.100.1:4711"], "198.51.100.1"),
        (("::1",), "::1", ["[2001:db8::1]:4711"], "2001:db8::1"),
        (("127.0.0.1",), "", ["198.51.100.1"], ""),
        # The last trusted hop names nobody else.
        (("127.0.0.1", "10.0.0.0/8"), "127.0.0.1", ["10.1.2.3"], "10.1.2.3"),
    ],
)
def test_only_a_trusted_proxy_is_believed(
    trusted: tuple[str, ...], peer: str, forwarded: list[str], client: str
) -> None:
    """The forwarded address counts only from a trusted proxy, and the list is read from its end."""
    found = TrustedProxies(trusted).client(peer, forwarded)
    assert found.address == client
    # Behind a proxy that is not trusted, or that names nobody, many people have this address.
    assert found.vouched is (client in {"198.51.100.1", "2001:db8::1"} and bool(trusted))


def test_a_household_is_counted_together() -> None:
    """A vouched IPv4 address and a vouched /64 network of IPv6 are one household. Other addresses count for nothing."""
    assert ClientAddress("198.51.100.1", vouched=True).group != ClientAddress("198.51.100.2", vouched=True).group
    assert ClientAddress("2001:db8::1", vouched=True).group == ClientAddress("2001:db8::2", vouched=True).group
    assert ClientAddress("2001:db8::1", vouched=True).group != ClientAddress("2001:db8:0:1::1", vouched=True).group
    assert ClientAddress("198.51.100.1", vouched=False).group is None


def test_a_proxy_must_be_an_address() -> None:
    """A trusted proxy must be an IP address, because a host name could point elsewhere later."""
    with pytest.raises(ValueError, match="proxy"):
        TrustedProxies(("proxy.example.org",))
