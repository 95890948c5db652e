"""Whether the machine lets the bot run: libopus and its web port."""

from __future__ import annotations

import errno
import socket
from typing import TYPE_CHECKING

from bot.cli.doctor.finding import Finding, Status
from bot.errors import why_not_listening
from bot.network_address import NetworkAddress
from voice.errors import OpusMissingError

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
