"""Where the bot sends to when the address was chosen in `/settings`: to the internet alone, and never to the machine or
the network that it runs on.

The form of an address is checked when somebody writes it. The IP address is checked right before each connection to it,
so a name that is looked up anew, and differently (DNS rebinding), is refused too. Redirects are never followed.
"""

from __future__ import annotations

import socket
from ipaddress import IPv6Address, IPv6Network, ip_address
from typing import TYPE_CHECKING, Final

import aiohttp
import yarl

from bot.errors import BotError
from bot.texts.text import Text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aiohttp import AddrInfoType

NO_ADDRESS: Final = Text(
    "Write an address that begins with https:// and has no user name in it. Its port must be 443, or 1024 or more."
)
NOT_PUBLIC: Final = Text(
    "This address is in a private network or on my own computer. Write an address on the internet."
)
# Below are the services of a system, such as mail.
FIRST_FREE_PORT: Final = 1024
# All of IPv6 that is given out on the internet.
_GIVEN_OUT: Final = IPv6Network("2000::/3")


class AddressRefusedError(BotError):
    """Nothing is sent to this address. The message says which address would do."""


class DeliveryError(BotError):
    """What was sent did not arrive. The message has the cause and the remedy."""


def checked_address(text: str, *, private: bool) -> str:
    """Return an address that somebody has written, without blanks around it. `private`: http and every port are allowed
    too. Raises `AddressRefusedError`.
    """
    try:
        url = yarl.URL(text.strip())
    except ValueError as error:
        raise AddressRefusedError(NO_ADDRESS) from error
    fine = url.scheme == "https" and (url.is_default_port() or (url.port or 0) >= FIRST_FREE_PORT)
    if not url.host or url.user or url.password or not (fine or (private and url.scheme in {"http", "https"})):
        raise AddressRefusedError(NO_ADDRESS)
    return str(url)


def host_of(address: str) -> str:
    """Return the host of a checked address, as people read it."""
    return yarl.URL(address).host or address


def is_public(address: str) -> bool:
    """Return whether an IP address is one of another machine on the internet."""
    found = ip_address(address)
    if isinstance(found, IPv6Address) and (found not in _GIVEN_OUT or found.sixtofour or found.teredo):
        # It is nobody's, or stands for an address of IPv4, which may be anybody's.
        return False
    return found.is_global and not found.is_multicast


def public_socket(address: AddrInfoType) -> socket.socket:
    """Return a socket for a connection to this address. Raises `AddressRefusedError` if it is not public."""
    family, kind, protocol, _, (host, *_) = address
    if not is_public(str(host)):
        raise AddressRefusedError(NOT_PUBLIC)
    return socket.socket(family, kind, protocol)


async def post(
    address: str,
    body: bytes,
    headers: Mapping[str, str],
    *,
    private: bool,
    within_s: float,
    accepted: frozenset[int] = frozenset(),
) -> None:
    """Send JSON to an address. `private`: to any network. `accepted`: statuses besides 2xx that will do.

    Raises `AddressRefusedError` and `DeliveryError`. *Cancellation* closes the connection.
    """
    host = host_of(address)
    # One address after the other: a refusal ends the attempt.
    connector = aiohttp.TCPConnector(happy_eyeballs_delay=None, socket_factory=None if private else public_socket)
    try:
        async with (
            aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(total=within_s)) as http,
            http.post(
                address,
                data=body,
                headers={"Content-Type": "application/json", **headers},
                allow_redirects=False,
            ) as answer,
        ):
            status = answer.status
    except TimeoutError as error:
        raise DeliveryError(
            Text(
                "I waited {seconds} seconds, but {host} did not answer. Check if this computer is running.",
                host=host,
                seconds=within_s,
            )
        ) from error
    except (aiohttp.ClientError, ValueError, OSError) as error:
        raise DeliveryError(
            Text("I could not connect to {host}. Check its name, its port and its certificate.", host=host)
        ) from error
    if 300 <= status < 400:
        raise DeliveryError(
            Text("{host} sends me to another address, but I do not go there. Write that other address here.", host=host)
        )
    if status not in accepted and not 200 <= status < 300:
        raise DeliveryError(
            Text(
                "{host} answered with the error {status}. The log on that computer says why.",
                host=host,
                status=str(status),
            )
        )
