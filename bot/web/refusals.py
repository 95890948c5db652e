"""Counts refused requests and links, so that a flood of them makes one log line a minute, and refuses those that a page
of another site makes. Browsers name the site in the header `Origin`.
"""

from __future__ import annotations

from collections import Counter
from enum import StrEnum
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from aiohttp import web

from bot.texts.text import Text
from bot.web.page_texts import json_response

if TYPE_CHECKING:
    from collections.abc import Callable

    from bot.web.security import Site

LOG_EVERY_S: Final = 60.0


class WebRefusal(StrEnum):
    """Why a request was refused before any link was read."""

    # What came is not HTTP, or too long.
    MALFORMED = "malformed"
    # The web socket was asked for by a page of another origin.
    FOREIGN_PAGE = "foreign_page"
    # Too many pages, reads or logins at once.
    CROWDED = "crowded"


class RefusalCounter:
    """Gathers refusals between two log lines. Callers pass in monotonic seconds."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._told_at = float("-inf")

    def count(self, refusal: str, now: float) -> dict[str, int]:
        """Count a refusal: a `WebRefusal`, or the reason why a link is not accepted. Returns the figures to log, or {}
        within a minute of the last ones.
        """
        self._counts[refusal] += 1
        if now - self._told_at < LOG_EVERY_S:
            return {}
        self._told_at = now
        return self.rest()

    def rest(self) -> dict[str, int]:
        """Return the figures that were not logged yet, and start again from zero."""
        figures = {f"{refusal}_count": count for refusal, count in sorted(self._counts.items())}
        self._counts.clear()
        return figures


def require_own_origin(request: web.Request, site: Site, count: Callable[[str], None]) -> None:
    """Raise `HTTPForbidden`, and `count` the refusal, unless a page of `site` sends this request.

    The answer says which address works: whoever forwards a port or uses another name of the machine reads it.
    """
    if not site.admits(request.headers.get("Origin")):
        count(WebRefusal.FOREIGN_PAGE)
        sentence = Text(
            "My pages work under {origin} only. Open this page there, or set PUBLIC_URL to the address that your "
            "browser shows.",
            origin=site.origin,
        )
        answer = json_response(request, {"error": sentence}, HTTPStatus.FORBIDDEN)
        raise web.HTTPForbidden(text=answer.text, content_type=answer.content_type)
