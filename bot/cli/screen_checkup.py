"""What sharing screens needs, as `roomtone doctor` tells it: something that reads them, and pages browsers trust."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from bot.cli.checkup import Finding, Status
from bot.screen.readers import uses_model

if TYPE_CHECKING:
    from bot.settings import WebSettings
    from voice.screen.settings import ScreenSettings

_LOCAL_HOSTS = frozenset({"localhost", "127.0.0.1", "::1"})


def check_screens(screen: ScreenSettings, web: WebSettings, *, installed: bool) -> Finding:
    """Judge whether people can share screens. Nothing else is kept from running without it.

    `installed`: whether the part that reads text is there.
    """
    if not (screen.enabled and web.enabled):
        return Finding("screens", Status.OK, "switched off (screen.enabled, web.enabled)")
    if not installed:
        without = "the vision model alone reads them" if uses_model(screen) else "nothing reads them"
        return Finding(
            "screens",
            Status.WARNING,
            f"the part 'screen' is not installed: {without}",
            "Run `pip install 'roomtone[screen]'`.",
        )
    reader = f"the vision model {screen.model} and embedded reading" if uses_model(screen) else "embedded reading"
    address = urlsplit(web.public_url)
    if not web.public_url:
        return Finding("screens", Status.OK, f"{reader}; links work on this machine alone (PUBLIC_URL is not set)")
    if address.scheme != "https" and address.hostname not in _LOCAL_HOSTS:
        return Finding(
            "screens",
            Status.WARNING,
            f"{web.public_url} is not https: no browser shares a screen with it",
            "Put a reverse proxy with a certificate in front and set PUBLIC_URL to its https address "
            "(docs/reverse-proxy.md).",
        )
    return Finding("screens", Status.OK, f"{reader}; pages at {web.public_url}")
