"""An address that somebody chose leads to the internet alone, and what does not arrive is told with its cause."""

from __future__ import annotations

from contextlib import nullcontext

import pytest

from bot.outgoing_address import AddressRefusedError, DeliveryError, checked_address, is_public, post
from tests.fakes.webhook_receiver import receiving
from tests.free_port import free_port

PUBLIC = ("8.8.8.8", "2001:4860:4860::8888")
# This machine, its network, clouds' own data, what stands for these in IPv6, groups, and what nobody has.
NOT_PUBLIC = (
    *("127.0.0.1", "0.0.0.0", "10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1"),
    *("224.0.0.1", "255.255.255.255", "192.0.2.1", "::1", "::", "fe80::1%1", "fc00::1", "fec0::1", "ff02::1"),
    *("::ffff:127.0.0.1", "::7f00:1", "64:ff9b::7f00:1", "2002:7f00:1::", "2001:0:7f00:1::", "2001:db8::1"),
)


def test_only_addresses_on_the_internet_are_public() -> None:
    """An address of IPv6 that stands for one of IPv4 is not."""
    assert [each for each in (*PUBLIC, *NOT_PUBLIC) if is_public(each)] == list(PUBLIC)


WRITTEN = (
    # What somebody writes, whether it will do, and whether it does where private networks are allowed.
    (" https://hooks.example.org/a?b=c ", True, True),
    ("https://hooks.example.org:8443/", True, True),
    ("https://[2001:4860:4860::8888]/", True, True),
    ("https://hooks.example.org:25/", False, True),
    ("http://hooks.example.org/", False, True),
    ("https://ada:secret@hooks.example.org/", False, False),
    ("https://hooks.example.org:99999/", False, False),
    ("https://[::1/", False, False),
    ("ftp://hooks.example.org/", False, False),
    ("hooks.example.org", False, False),
    ("https:///a", False, False),
)


@pytest.mark.parametrize(("written", "public", "private"), WRITTEN)
def test_the_form_of_an_address_is_checked(written: str, public: bool, private: bool) -> None:
    """It is https, on its own port or a free one, without a password that the bot would have to keep."""
    for allowed, is_private in ((public, False), (private, True)):
        with nullcontext() if allowed else pytest.raises(AddressRefusedError, match="https"):
            assert checked_address(written, private=is_private) == written.strip()


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]"])
async def test_no_connection_leads_to_this_machine(host: str) -> None:
    """A name is looked up for the connection itself, so whatever it was a moment ago, nothing comes there."""
    async with receiving() as receiver:
        with pytest.raises(AddressRefusedError, match="private"):
            await post(f"http://{host}:{receiver.port}/", b"{}", {}, private=False, within_s=60.0)
        assert receiver.taken == []


@pytest.mark.parametrize(
    ("status", "why"), [(204, None), (307, "another address"), (401, "401"), (500, "500"), (None, "not answer")]
)
async def test_what_does_not_arrive_is_told(status: int | None, why: str | None) -> None:
    """A redirect is not followed, and a server that hangs is not waited for."""
    async with receiving() as receiver:
        receiver.status = status
        with nullcontext() if why is None else pytest.raises(DeliveryError, match=why):
            await post(receiver.address, b"{}", {}, private=True, within_s=60.0 if status else 0.2)
        assert len(receiver.taken) <= 1


@pytest.mark.parametrize("address", ["http://127.0.0.1:{port}/", "https://127.0.0.1:{port}/", "http://127.1/"])
async def test_who_cannot_be_reached_is_told(address: str) -> None:
    """Nobody listens there, or it is no address."""
    with pytest.raises(DeliveryError, match="connect"):
        await post(address.format(port=free_port()), b"{}", {}, private=True, within_s=60.0)
