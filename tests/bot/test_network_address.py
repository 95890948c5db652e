"""HOST:PORT is read in one way, whatever it is for."""

from __future__ import annotations

import pytest

from bot.network_address import NetworkAddress


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("10.0.0.1:8572", "10.0.0.1", 8572),
        ("rooms.internal:1", "rooms.internal", 1),
        ("north:65535", "north", 65535),
        ("roomtone_head:6379", "roomtone_head", 6379),
        ("bücher.example:80", "bücher.example", 80),
        ("[fd00::1]:8572", "fd00::1", 8572),
        ("fd00::1:8572", "fd00::1", 8572),
        ("[fe80::1%eth0]:8572", "fe80::1%eth0", 8572),
        (" 10.0.0.1:8572\n", "10.0.0.1", 8572),
    ],
)
def test_an_address_is_a_host_and_a_port(text: str, host: str, port: int) -> None:
    """An IPv6 address may have brackets, and gets them where it is written again."""
    address = NetworkAddress.parsed(text)
    assert address == NetworkAddress(host, port)
    assert str(address) == (f"[{host}]:{port}" if ":" in host else f"{host}:{port}")
    assert NetworkAddress.parsed(str(address)) == address


@pytest.mark.parametrize(
    "text",
    [
        "",
        "8572",
        "10.0.0.1",
        "10.0.0.1:",
        "[fd00::1]",
        ":8572",
        "[]:8572",
        "a:0",
        "a:65536",
        "a:-1",
        "a:+1",
        "a:1.0",
        "a:b",
        "a:1_000",
        "a:²",
        "a: 1",
        "a :1",
        "a b:1",
        "a\tb:1",
        "a/b:1",
        "http://a:1",
        "a@b:1",
        "a?:1",
        "a#:1",
        "[fd00::1:8572",
        "fd00::1]:8572",
        "[north]:8572",
        "[10.0.0.1]:8572",
        "a:b:1",
        "fd00::8572",
        "x..y:6379",
        f"{'x' * 64}:1",
    ],
)
def test_anything_else_is_refused(text: str) -> None:
    """Also what is no port, and no name that a system could look up."""
    with pytest.raises(ValueError):  # noqa: PT011 - whoever asked says what is wrong
        NetworkAddress.parsed(text)
