"""What goes wrong with requests to REST when a test orders it: errors of Discord's servers, limits and bans."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from aiohttp import web

from rehearsal.discord.rest.wire import json_response

if TYPE_CHECKING:
    from collections.abc import Callable

# What Discord's proxies answer in place of JSON. aiohttp adds the charset that a browser needs.
_ERROR_PAGE: Final = "<html><head><title>{status} Server Error</title></head><body>Please try again.</body></html>"
_BAN_PAGE: Final = (
    "<!doctype html><html><head><title>Access denied | discord.com used Cloudflare to restrict access</title></head>"
    "<body>Error 1015: You are being rate limited.</body></html>"
)
# Only answers of Discord itself have this header. discord.py takes a 429 without it for a ban.
VIA: Final = {"Via": "1.1 google"}


@dataclass(slots=True)
class ErrorAnswers:
    """The next `count` requests are answered with `status` and a web page (`html`), or with no body.

    `carried_out`: Discord does what they ask all the same.
    """

    count: int = 0
    status: int = 503
    html: bool = True
    carried_out: bool = False

    def next(self) -> web.Response | None:
        """Return the answer to one more request; None: it is not affected."""
        if not self.count:
            return None
        self.count -= 1
        body = _ERROR_PAGE.format(status=self.status) if self.html else ""
        return web.Response(status=self.status, text=body, content_type="text/html")


@dataclass(slots=True)
class RefusedRequests:
    """The next `count` requests are refused with 429; `everywhere`: by the limit over all routes."""

    count: int = 0
    retry_after_s: float = 1.0
    everywhere: bool = False

    def next(self) -> web.Response | None:
        """Return the answer to one more request; None: it is not affected."""
        if not self.count:
            return None
        self.count -= 1
        return limited(self.retry_after_s, everywhere=self.everywhere, scope="global" if self.everywhere else "user")


@dataclass(slots=True)
class RestFaults:
    """The faults in effect. `monotonic`: the clock, in seconds."""

    monotonic: Callable[[], float]
    errors: ErrorAnswers = field(default_factory=ErrorAnswers)
    interaction_errors: ErrorAnswers = field(default_factory=ErrorAnswers)
    refused: RefusedRequests = field(default_factory=RefusedRequests)
    _banned_until: float = float("-inf")

    def ban(self, seconds: float) -> None:
        """Refuse every request for so long."""
        self._banned_until = self.monotonic() + seconds

    def ban_answer(self) -> web.Response | None:
        """Return Cloudflare's answer to an address that is banned; None: it is not."""
        left_s = self._banned_until - self.monotonic()
        if left_s <= 0:
            return None
        headers = {"Retry-After": str(round(left_s) + 1)}
        return web.Response(status=429, text=_BAN_PAGE, content_type="text/html", headers=headers)


def limited(retry_after_s: float, *, everywhere: bool, scope: str) -> web.Response:
    """Return Discord's answer to one request too many."""
    body = {"message": "You are being rate limited.", "retry_after": retry_after_s, "global": everywhere}
    answer = json_response(body, status=429)
    answer.headers.update({**VIA, "Retry-After": str(round(retry_after_s) + 1), "X-RateLimit-Scope": scope})
    if everywhere:
        answer.headers["X-RateLimit-Global"] = "true"
    return answer
