"""What does not work, in sentences."""

from __future__ import annotations

import pytest

from bot.health import Ailment, Health, sentences
from tests.fakes.clock import FakeClock
from voice.circuit_breaker import Outage

PROBLEM = "The voice kokoro at http://a/v1 cannot be reached. Check speaking.base_url and that the server is running."


@pytest.mark.parametrize(
    ("since", "until", "told"),
    [
        (999.5, 1000.4, "has not worked for 1 second; Bea speaks, and I try it again with the next call."),
        (940.0, 1001.0, "has not worked for 60 seconds; Bea speaks, and I try it again in 1 second."),
        (880.0, 1300.0, "has not worked for 2 minutes; Bea speaks, and I try it again in 5 minutes."),
        (-6200.0, None, "has not worked for 2 hours; Bea speaks."),
        # Its time is over, and nobody has called it since.
        (955.0, 990.0, "has not worked for 45 seconds; Bea speaks, and I try it again with the next call."),
    ],
)
def test_an_ailment_in_plain_words(since: float, until: float | None, told: str) -> None:
    """What, since when, what happens instead, when it is tried again, what to do."""
    ailment = Ailment("the voice kokoro", "Bea speaks", Outage(since, until, PROBLEM))
    assert sentences(ailment, 1000.0) == f"The voice kokoro {told} {PROBLEM}"


def test_what_is_missing_stays_so() -> None:
    """Since the start, and nobody tries it again."""
    clock = FakeClock()
    health = Health(clock)
    clock.advance(10.0)
    health.missing("my voice", instead="I write", problem="There is none.")
    clock.advance(600.0)
    assert health.told() == "My voice has not worked for 10 minutes; I write. There is none."


def test_everything_that_ails_is_told() -> None:
    """And nothing where all is well."""
    clock, found = FakeClock(), list[Ailment]()
    health = Health(clock)
    health.watch(list)
    health.watch(lambda: found)
    assert health.told() == ""
    found += [Ailment(what, "I wait", Outage(0.0, None, "")) for what in ("one", "another")]
    clock.advance(3.0)
    assert health.told() == "One has not worked for 3 seconds; I wait. Another has not worked for 3 seconds; I wait."
