"""Discord's rate limits as a table: what is counted together, when a window ends, and what the headers say."""

from __future__ import annotations

from rehearsal.discord.limits.rate_limits import Allowance, RateLimits
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


def test_a_route_has_its_limit_in_each_channel() -> None:
    """The sixth message within five seconds is refused, in this channel and for this bot alone."""
    counted, clock = limits()
    left = [use(counted, channel="601").headers["X-RateLimit-Remaining"] for _ in range(5)]
    assert left == ["4", "3", "2", "1", "0"]
    clock.advance(3.0)
    refused = use(counted, channel="601")
    assert (refused.retry_after_s, refused.everywhere) == (2.0, False)
    assert use(counted, channel="600").retry_after_s is None
    assert use(counted, who="Bot 1002.x", channel="601").retry_after_s is None
    clock.advance(2.0)
    assert use(counted, channel="601").retry_after_s is None


def test_the_headers_are_discords() -> None:
    """They tell the limit, what is left, and when the window ends, on the clock and from now."""
    counted, clock = limits()
    first = use(counted, channel="601").headers
    clock.advance(1.5)
    second = use(counted, channel="601").headers
    assert first["X-RateLimit-Bucket"] == second["X-RateLimit-Bucket"]
    assert {key: value for key, value in second.items() if key != "X-RateLimit-Bucket"} == {
        "X-RateLimit-Limit": "5",
        "X-RateLimit-Remaining": "3",
        "X-RateLimit-Reset": "1003.500",
        "X-RateLimit-Reset-After": "3.500",
    }


def test_all_routes_together_have_a_limit() -> None:
    """The fifty-first request within a second is refused everywhere, whatever it is about."""
    counted, clock = limits()
    for number in range(50):
        assert use(counted, ("GET", "/users/@me"), channel=str(number)).headers == {}
    refused = use(counted, channel="601")
    assert (refused.retry_after_s, refused.everywhere) == (1.0, True)
    clock.advance(1.0)
    assert use(counted, channel="601").retry_after_s is None


def test_answers_to_interactions_count_by_their_token_alone() -> None:
    """They have no part in the limit over all routes."""
    counted, _ = limits()
    for token in ("a", "b"):
        outcomes = [use(counted, HOOK, who="", token=token).retry_after_s for _ in range(6)]
        assert outcomes == [None] * 5 + [2.0]
    for number in range(60):
        assert use(counted, HOOK, who="", token=f"t{number}").retry_after_s is None
