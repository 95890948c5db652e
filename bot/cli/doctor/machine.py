"""Whether the machine lets the bot run: libopus, its web port, and its memory for received voice."""

from __future__ import annotations

import errno
import socket
from typing import TYPE_CHECKING

from bot.cli.doctor.finding import Finding, Status
from bot.errors import why_not_listening
from bot.network_address import NetworkAddress
from voice.errors import OpusMissingError
from voice.transport.receive_buffer import DATAGRAM_BYTES, SMALL_BYTES, WANTED_BYTES, enlarge

if TYPE_CHECKING:
    from collections.abc import Callable

    from bot.settings import WebSettings


def check_opus(version: Callable[[], str]) -> Finding:
    """Check whether libopus can be loaded, and tell which one. `version` raises `OpusMissingError`."""
    try:
        found = version()
    except OpusMissingError as error:
        detail, _, remedy = str(error).partition(" Install ")
        return Finding("libopus", Status.MISSING, detail, f"Install {remedy}" if remedy else "Install libopus.")
    return Finding("libopus", Status.OK, found.removeprefix("libopus "))


def check_web_port(web: WebSettings, *, bot_runs: bool) -> Finding:
    """Check whether the web pages can listen where the settings say. Without them the bot talks all the same.

    `bot_runs`: whether a bot runs with these settings, whose port it is then.
    """
    where = str(NetworkAddress(web.host, web.port))
    try:
        found = socket.getaddrinfo(web.host, web.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        for family, address in dict.fromkeys((family, address) for family, _, _, _, address in found):
            socket.create_server(address, family=family).close()
    except UnicodeError:
        reason = f"{web.host} is no host"
    except OSError as error:
        if error.errno == errno.EADDRINUSE and bot_runs:
            return Finding("web port", Status.OK, f"{where} is in use, and a bot runs with these settings")
        reason = why_not_listening(error)
    else:
        return Finding("web port", Status.OK, f"{where} is free" if web.port else f"any free one on {web.host}")
    return Finding(
        "web port",
        Status.WARNING,
        f"nothing can listen on {where} ({reason}): there are no dashboard, no pages for screens and no metrics",
        "End the program that listens there (`ss -ltnp` names it), or choose another web.host or web.port.",
    )


def check_receive_buffer(granted_bytes: Callable[[], int] | None = None) -> Finding:
    """Check how much received voice the system keeps while the bot is busy."""
    granted = (granted_bytes or _receive_buffer)()
    detail = f"the system keeps {granted // 1024:,} KB of received voice"
    if granted >= SMALL_BYTES:
        return Finding("receive buffer", Status.OK, detail)
    # Five datagrams of each person in a tenth of a second.
    speakers = granted // (5 * DATAGRAM_BYTES)
    return Finding(
        "receive buffer",
        Status.WARNING,
        f"{detail}, and {WANTED_BYTES // 1024:,} KB were asked for: of more than {speakers} people who speak at once, "
        "sound is lost whenever the machine is busy for a tenth of a second",
        f"On the machine itself (not in a container): `sudo sysctl -w net.core.rmem_max={WANTED_BYTES}`, and the same "
        "line in /etc/sysctl.d to keep it.",
    )


def _receive_buffer() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        return enlarge(probe)
