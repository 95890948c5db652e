"""The ordered faults that every request to REST passes before its handler."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from aiohttp import web

from rehearsal.discord.rest.wire import json_response

if TYPE_CHECKING:
    from collections.abc import Callable

    from rehearsal.discord.rest.wire import Handler

# What Discord's proxies answer in place of JSON. aiohttp adds the charset that a browser needs.
_ERROR_PAGE: Final = "<html><head><title>{status} Server Error</title></head><body>Please try again.</body></html>"
# Only answers of Discord itself have this header. discord.py takes a 429 without it for a ban.
_VIA: Final = {"Via": "1.1 google"}


@dataclass(slots=True)
class OrderedAnswers:
    """The next `count` requests get this answer. `carried_out`: Discord does what they ask all the same."""

    count: int = 0
    answer: Callable[[], web.Response] = web.Response
    carried_out: bool = False

    def next(self) -> web.Response | None:
        """Return the answer to one more request; None: it is not affected."""
        if not self.count:
            return None
        self.count -= 1
        return self.answer()


@dataclass(slots=True)
class RestFaults:
    """The faults in effect."""

    errors: OrderedAnswers = field(default_factory=OrderedAnswers)
    interaction_errors: OrderedAnswers = field(default_factory=OrderedAnswers)
    refused: OrderedAnswers = field(default_factory=OrderedAnswers)


def error_page(status: int, *, html: bool) -> web.Response:
    """Return an error of Discord's servers: a web page, or no body."""
    return web.Response(status=status, text=_ERROR_PAGE.format(status=status) if html else "", content_type="text/html")


def limited(retry_after_s: float, *, everywhere: bool) -> web.Response:
    """Return Discord's answer to one request too many; `everywhere`: by the limit over all routes."""
    body = {"message": "You are being rate limited.", "retry_after": retry_after_s, "global": everywhere}
    scope = "global" if everywhere else "user"
    answer = json_response(body, status=429)
    answer.headers.update({**_VIA, "Retry-After": str(round(retry_after_s) + 1), "X-RateLimit-Scope": scope})
    if everywhere:
        answer.headers["X-RateLimit-Global"] = "true"
    return answer


def guarded(route: str, handler: Handler, faults: RestFaults) -> Handler:
    """Return a handler behind the ordered faults. `route`: its path after the prefix of the API, with named parts."""
    of_interaction = route.startswith(("/interactions/", "/webhooks/"))

    async def passed(request: web.Request) -> web.Response:
        if not of_interaction and (refused := faults.refused.next()) is not None:
            return refused
        errors = faults.interaction_errors if of_interaction else faults.errors
        carried_out = errors.carried_out
        if (failed := errors.next()) is not None:
            if carried_out:
                await handler(request)
            return failed
        answer = await handler(request)
        answer.headers.update(_VIA)
        return answer

    return passed
