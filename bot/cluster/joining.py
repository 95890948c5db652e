"""What a machine looks at before it joins a cluster, so that the operator reads at once what is wrong.

Ray tries for minutes, and says it in words of its own.
"""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress
from ipaddress import IPv4Address, ip_address
from typing import TYPE_CHECKING, Final

from bot.cluster.address import TOKEN_FILE, ClusterError
from bot.errors import SetupError
from bot.network_address import NetworkAddress

if TYPE_CHECKING:
    from pathlib import Path

# Seconds in which the first machine must be there. One that starts at the same time takes up to ten.
HEAD_WITHIN_S: Final = 20.0
_EVERY_S: Final = 0.5
_EVERYBODY: Final = IPv4Address("255.255.255.255")
# What Ray says of a token that is not the cluster's (`AuthenticationError`).
_WRONG_TOKEN: Final = "InvalidAuthToken"  # noqa: S105 - the name of an error


def check_own_ip(ip: str) -> None:
    """Raise `SetupError` unless this is an address of this machine."""
    try:
        address = ip_address(ip)
    except ValueError as error:
        raise SetupError(
            f"{ip!r} is not an IP address. Give --ip the one at which the other machines reach this one, for example "
            "10.0.0.1."
        ) from error
    if address.is_unspecified or address.is_multicast or address == _EVERYBODY:
        raise SetupError(
            f"Nobody can reach one machine at {ip}. Give --ip one of its own addresses (`ip address` shows them)."
        )
    family = socket.AF_INET6 if address.version == 6 else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.bind((ip, 0))
    except OSError as error:
        raise SetupError(
            f"This machine does not have the address {ip}. Give --ip one of its own (`ip address` shows them), at "
            "which the other machines reach it."
        ) from error


async def reach_head(address: str, within_s: float) -> None:
    """Return when somebody answers at the first machine's address, HOST:PORT or [IPv6]:PORT. Raises `ClusterError` if
    nobody does within `within_s`, and `ValueError` if the address has another form.
    """
    head = NetworkAddress.parsed(address)
    try:
        async with asyncio.timeout(within_s):
            while not await _answers(head.host, head.port):  # noqa: ASYNC110 - another machine tells nothing
                await asyncio.sleep(_EVERY_S)
    except TimeoutError as error:
        raise ClusterError(
            f"Nobody answers at {address}. Does `roomtone cluster up --ip {head.host}` run on the first machine, "
            "and do firewalls let this machine through?"
        ) from error


async def _answers(host: str, port: int) -> bool:
    with suppress(OSError):
        _, writer = await asyncio.open_connection(host, port)
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()
        return True
    return False


def check_token_taken(said: str, folder: Path) -> None:
    """Raise `ClusterError` if the cluster has refused this machine's token. `said`: by Ray, when it ended."""
    if _WRONG_TOKEN in said:
        raise ClusterError(
            f"The cluster does not take the token in {folder / TOKEN_FILE}. Copy the first machine's there again."
        )
