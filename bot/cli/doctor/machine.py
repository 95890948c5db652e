"""Whether the machine lets the bot run: its user, its sockets, its web port, and its memory for received voice."""

from __future__ import annotations

import errno
import json
import socket
from typing import TYPE_CHECKING, Final

from bot.cli.doctor.finding import Finding, Status
from bot.errors import why_not_listening
from bot.network_address import NetworkAddress
from voice.transport.receive_buffer import DATAGRAM_BYTES, SMALL_BYTES, WANTED_BYTES, enlarge

if TYPE_CHECKING:
    from collections.abc import Callable

    from bot.settings import WebSettings

# A bot on this machine answers within milliseconds; one that is busy has some time.
ANSWER_WITHIN_S: Final = 3.0
# Its answer is a few sentences at most.
_MOST_BYTES: Final = 65_536


def check_user(*, root: bool) -> Finding:
    """Check that the bot will not run with all rights."""
    if not root:
        return Finding("user", Status.OK, "not root")
    return Finding(
        "user",
        Status.WARNING,
        "root: a mistake in a library or tool could reach everything on this machine",
        "Run the bot as a user of its own that owns the data folder; the Docker image does.",
    )


def check_ports(bind: Callable[[socket.SocketKind], None] | None = None) -> Finding:
    """Check whether sockets can be opened: UDP for voice, TCP on this machine for the rehearsal."""
    try:
        for kind in (socket.SOCK_DGRAM, socket.SOCK_STREAM):
            (bind or _bind)(kind)
    except OSError as error:
        return Finding(
            "network",
            Status.MISSING,
            f"no port could be opened on 127.0.0.1: {error.strerror or type(error).__name__}",
            "Allow the process to open sockets: look at the container's network, the firewall and `ulimit -n`.",
        )
    return Finding("network", Status.OK, "UDP and TCP ports can be opened")


async def check_web_port(web: WebSettings, *, bot_runs: bool) -> Finding:
    """Check whether the web pages can listen where the settings say. Without them the bot talks all the same.

    `bot_runs`: whether a bot runs with these settings. A port in use may be its own then, if a bot answers there.
    """
    name, where = "web port", str(NetworkAddress(web.host, web.port))
    try:
        _listen(web)
    except UnicodeError:
        reason = f"{web.host} is no host"
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            if bot_runs and await _bot_answers(web):
                # Its answer does not tell whether it is the one of this data folder.
                detail = f"{where} is in use, by a bot that runs (several on one machine need a web.port each)"
                return Finding(name, Status.OK, detail)
            # One that is frozen does not answer either.
            who = "and no bot answers there" if bot_runs else "by another program"
            return Finding(
                name,
                Status.WARNING,
                f"{where} is in use, {who}: there are no dashboard, no pages for screens and no metrics",
                "End that program (`ss -ltnp` names it), or choose another web.port.",
            )
        reason = why_not_listening(error)
    else:
        return Finding(name, Status.OK, f"{where} is free" if web.port else f"any free one on {web.host}")
    return Finding(
        name,
        Status.WARNING,
        f"nothing can listen on {where} ({reason}): there are no dashboard, no pages for screens and no metrics",
        "Set web.host to an address of this machine, and web.port to one from 1024 on.",
    )


def check_receive_buffer(granted_bytes: Callable[[], int] | None = None) -> Finding:
    """Check how much received voice the system keeps while the bot is busy."""
    try:
        granted = (granted_bytes or _receive_buffer)()
    except OSError as error:
        # `check_ports` names the cause and the remedy.
        return Finding("receive buffer", Status.WARNING, f"not known: {error.strerror or type(error).__name__}")
    detail = f"the system keeps {granted // 1024:,} KB of received voice"
    if granted >= SMALL_BYTES:
        return Finding("receive buffer", Status.OK, detail)
    return Finding(
        "receive buffer",
        Status.WARNING,
        f"{detail}, and {WANTED_BYTES // 1024:,} KB were asked for: of more than {_speakers(granted)} people who speak "
        "at once, sound is lost whenever the machine is busy for a tenth of a second",
        f"On the machine itself (not in a container): `sudo sysctl -w net.core.rmem_max={WANTED_BYTES}`, and the same "
        "line in /etc/sysctl.d to keep it.",
    )


def _bind(kind: socket.SocketKind) -> None:
    with socket.socket(socket.AF_INET, kind) as probe:
        probe.bind(("127.0.0.1", 0))


def _listen(web: WebSettings) -> None:
    """Listen for a moment on every address of the host, as the web server does."""
    found = socket.getaddrinfo(web.host, web.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    for family, address in dict.fromkeys((family, address) for family, _, _, _, address in found):
        socket.create_server(address, family=family).close()


async def _bot_answers(web: WebSettings) -> bool:
    """Return whether what listens there answers monitoring as a bot does, healthy or not."""
    import aiohttp

    from bot.monitoring.probes import ALIVE, DEAD
    from bot.web.probes import HEALTH_PATH

    # What listens on all addresses is asked at the machine's own.
    host = {"": "localhost", "0.0.0.0": "127.0.0.1", "::": "::1"}.get(web.host, web.host)  # noqa: S104 - none is bound
    timeout = aiohttp.ClientTimeout(total=ANSWER_WITHIN_S)
    try:
        async with (
            aiohttp.ClientSession(timeout=timeout, auto_decompress=False) as session,
            session.get(f"http://{NetworkAddress(host, web.port)}{HEALTH_PATH}", allow_redirects=False) as answer,
        ):
            if not 0 < (answer.content_length or 0) <= _MOST_BYTES:
                return False
            body = json.loads(await answer.read())
    except (aiohttp.ClientError, OSError, TimeoutError, ValueError, RecursionError):
        return False
    return isinstance(body, dict) and body.get("status") in (ALIVE, DEAD)


def _receive_buffer() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        return enlarge(probe)


def _speakers(granted_bytes: int) -> int:
    """Return how many people's voice fits into the buffer for a tenth of a second: five datagrams each."""
    return granted_bytes // (5 * DATAGRAM_BYTES)
