"""What every request to REST passes before its handler: ordered faults, and Discord's rate limits.

Discord documents the headers and the limit over all routes, and says of the others that clients must read them from the
headers. Every route has them but the first answer to an interaction. The numbers here are those that libraries'
authors have seen; of a route that is not in the table nobody has met a limit of its own.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from aiohttp import web

from rehearsal.discord.rest.wire import VIA, Handler, limited

_COMMANDS: Final = "/applications/{application}/commands"
_GUILD_COMMANDS: Final = "/applications/{application}/guilds/{guild}/commands"
_MESSAGES: Final = "/channels/{channel}/messages"
_MESSAGE: Final = _MESSAGES + "/{message}"
_REACTION: Final = _MESSAGE + "/reactions/{emoji}/@me"
_HOOK: Final = "/webhooks/{application}/{token}"
# Requests and seconds, by method and route.
LIMITS: Mapping[tuple[str, str], tuple[int, float]] = {
    ("POST", _MESSAGES): (5, 5.0),
    ("PATCH", _MESSAGE): (5, 5.0),
    ("DELETE", _MESSAGE): (5, 1.0),
    ("PUT", _REACTION): (1, 0.25),
    ("DELETE", _REACTION): (1, 0.25),
    ("POST", "/channels/{channel}/typing"): (5, 5.0),
    ("GET", "/guilds/{guild}/members/{user}"): (5, 1.0),
    ("PUT", _COMMANDS): (2, 20.0),
    ("PUT", _GUILD_COMMANDS): (2, 20.0),
    ("POST", _HOOK): (5, 2.0),
    ("PATCH", _HOOK + "/messages/{message}"): (5, 2.0),
    ("DELETE", _HOOK + "/messages/{message}"): (5, 2.0),
}
_EVERYWHERE: Final = (50, 1.0)
# The parts of a path that have limits of their own ("major parameters").
_MAJOR: Final = ("channel", "guild", "application", "token")
# So many windows are kept before those that are over are forgotten.
_MANY: Final = 1000


@dataclass(slots=True)
class _Window:
    """The requests since the first of them; a new window begins with the first request after `ends_at`."""

    ends_at: float
    used: int = 0


@dataclass(frozen=True, slots=True)
class Allowance:
    """What became of a request. `retry_after_s`: None if it is allowed. `headers`: those of its answer."""

    headers: Mapping[str, str]
    retry_after_s: float | None = None
    everywhere: bool = False


class RateLimits:
    """Counts requests. `monotonic`, `wall`: the clocks, in seconds."""

    def __init__(self, *, monotonic: Callable[[], float], wall: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._wall = wall
        self._windows: dict[tuple[str, ...], _Window] = {}

    def use(self, who: str, method: str, route: str, path: Mapping[str, str]) -> Allowance:
        """Count one request. `who`: the bot; '' for an answer to an interaction, which is not counted everywhere.
        `path`: the parts of its path that have a name.
        """
        now = self._monotonic()
        if who:
            allowed, least = _EVERYWHERE
            window = self._window((who,), least, now)
            if window.used >= allowed:
                return Allowance({}, retry_after_s=window.ends_at - now, everywhere=True)
            window.used += 1
        if not who and (method, route) not in LIMITS:
            return Allowance({})
        requests, per_s = LIMITS.get((method, route), _EVERYWHERE)
        window = self._window((who, method, route, *(path.get(part, "") for part in _MAJOR)), per_s, now)
        left_s = window.ends_at - now
        if window.used < requests:
            window.used += 1
            return Allowance(self._headers(method, route, requests, requests - window.used, left_s))
        return Allowance(self._headers(method, route, requests, 0, left_s), retry_after_s=left_s)

    def _window(self, key: tuple[str, ...], per_s: float, now: float) -> _Window:
        window = self._windows.get(key)
        if window is None or window.ends_at <= now:
            if len(self._windows) >= _MANY:
                self._windows = {each: one for each, one in self._windows.items() if one.ends_at > now}
            window = self._windows[key] = _Window(now + per_s)
        return window

    def _headers(self, method: str, route: str, limit: int, remaining: int, left_s: float) -> dict[str, str]:
        return {
            "X-RateLimit-Limit": str(limit),
            "X-RateLimit-Remaining": str(remaining),
            "X-RateLimit-Reset": f"{self._wall() + left_s:.3f}",
            "X-RateLimit-Reset-After": f"{left_s:.3f}",
            "X-RateLimit-Bucket": f"{zlib.crc32(f'{method} {route}'.encode()):08x}",
        }


# What Discord's proxies answer in place of JSON. aiohttp adds the charset that a browser needs.
_ERROR_PAGE: Final = "<html><head><title>{status} Server Error</title></head><body>Please try again.</body></html>"


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


class RestGate:
    """Lets requests through, or answers them itself."""

    def __init__(self, limits: RateLimits, faults: RestFaults) -> None:
        self._limits = limits
        self._faults = faults
        # By what names clients have called themselves; Discord may refuse those that are no bot's.
        self.user_agents: set[str] = set()

    def guarded(self, method: str, route: str, handler: Handler) -> Handler:
        """Return a handler behind the gate. `route`: its path after the prefix of the API, with named parts."""
        # Answers to interactions are authorised by their token alone, and only follow-ups and edits have limits.
        of_interaction = route.startswith(("/interactions/", "/webhooks/"))

        async def passed(request: web.Request) -> web.Response:
            self.user_agents.add(request.headers.get("User-Agent", ""))
            if not of_interaction and (refused := self._faults.refused.next()) is not None:
                return refused
            who = "" if of_interaction else request.headers.get("Authorization", "nobody")
            allowance = self._limits.use(who, method, route, request.match_info)
            if allowance.retry_after_s is not None:
                answer = limited(allowance.retry_after_s, everywhere=allowance.everywhere)
                answer.headers.update(allowance.headers)
                return answer
            errors = self._faults.interaction_errors if of_interaction else self._faults.errors
            carried_out = errors.carried_out
            if (failed := errors.next()) is not None:
                if carried_out:
                    await handler(request)
                return failed
            answer = await handler(request)
            answer.headers.update({**VIA, **allowance.headers})
            return answer

        return passed
