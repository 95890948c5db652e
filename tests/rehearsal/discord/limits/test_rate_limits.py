"""Discord's rate limits as a table: what is counted together, when a window ends, and what the headers say."""

from __future__ import annotations

from rehearsal.discord.rest.gate import Allowance, RateLimits
from tests.fakes.clock import FakeClock

BOT = "Bot 1001.x"
POST = ("POST", "/channels/{channel}/messages")
HOOK = ("POST", "/webhooks/{application}/{token}")


def limits() -> tuple[RateLimits, FakeClock]:
    """Return limits with a clock of their own."""
    clock = FakeClock()
    return RateLimits(monotonic=clock.monotonic, wall=lambda: 1000.0), clock


def use(counted: RateLimits, route: tuple[str, str] = POST, *, who: str = BOT, **path: str) -> Allowance:
    """Count one request."""
    return counted.use(who, *route, path)


def test_all_routes_together_have_a_limit() -> None:
    """The fifty-first request within a second is refused everywhere, whatever it is about. Each route has headers."""
    counted, clock = limits()
    for number in range(50):
        told = use(counted, ("GET", "/users/@me"), channel=str(number)).headers
        assert (told["X-RateLimit-Remaining"], told["X-RateLimit-Reset-After"]) == ("49", "1.000")
    refused = use(counted, channel="601")
    assert (refused.retry_after_s, refused.everywhere) == (1.0, True)
    clock.advance(1.0)
    assert use(counted, channel="601").retry_after_s is None


def test_answers_to_interactions_count_by_their_token_alone() -> None:
    """They have no part in the limit over all routes, and the first answer has no limit."""
    counted, _ = limits()
    assert use(counted, ("POST", "/interactions/{interaction}/{token}/callback"), who="", token="a").headers == {}
    for token in ("a", "b"):
        outcomes = [use(counted, HOOK, who="", token=token).retry_after_s for _ in range(6)]
        assert outcomes == [None] * 5 + [2.0]
    for number in range(60):
        assert use(counted, HOOK, who="", token=f"t{number}").retry_after_s is None
