"""When a service is asked again: the circuit breaker, the pauses before trials, and the limit of how often."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voice.circuit_breaker import FAILURE_THRESHOLD, OPEN_S, TRIAL_S, CircuitBreaker, Outage
from voice.errors import VoiceError
from voice.retry_pause import retry_pause_s
from voice.token_bucket import TokenBucket

FIRST_OPEN_S = 15.0
LONGEST_OPEN_S = 300.0

# A step is (time, what happens, result). `ask` calls `admits`; `fail` and `fail for good` record a failure; `abandon`
# ends a trial without its result.
FIXED = [
    (0.0, "ask", True),
    (0.0, "fail", 0.0),
    (0.0, "ask", True),
    (5.0, "fail", OPEN_S),
    (64.9, "ask", False),
    (65.0, "ask", True),
    (65.0, "ask", False),
    (66.0, "fail", OPEN_S),
    (126.0, "ask", True),
    (126.0, "succeed", None),
    (126.0, "ask", True),
    (126.0, "ask", True),
    (127.0, "fail", 0.0),
    (128.0, "succeed", None),
    (129.0, "fail", 0.0),
]
GROWING = [
    (0.0, "fail for good", 15.0),
    (15.0, "ask", True),
    (15.0, "fail", 30.0),
    (45.0, "ask", True),
    # The trial never reports its result, so another one is admitted.
    (45.0 + TRIAL_S, "ask", True),
    (70.0, "fail for good", 60.0),
    (130.0, "fail", 120.0),
    (250.0, "fail", 240.0),
    (490.0, "fail", 300.0),
    (790.0, "fail", 300.0),
    (1090.0, "ask", True),
    (1090.0, "succeed", None),
    (1091.0, "fail", 0.0),
    (1092.0, "fail", 15.0),
]

ABANDONED = [
    (0.0, "fail for good", OPEN_S),
    # No trial runs yet.
    (10.0, "abandon", None),
    (59.0, "ask", False),
    (60.0, "ask", True),
    (61.0, "ask", False),
    (61.0, "abandon", None),
    (61.0, "ask", True),
    (62.0, "ask", False),
    (62.0, "fail", OPEN_S),
    (122.0, "ask", True),
    (122.0, "succeed", None),
    (123.0, "abandon", None),
    (123.0, "ask", True),
    (123.0, "ask", True),
]

AWAY, SLOW = VoiceError("It is away."), VoiceError("It is slow.")


@pytest.mark.parametrize(
    ("breaker", "steps"),
    [
        (CircuitBreaker(), FIXED),
        (CircuitBreaker(open_s=FIRST_OPEN_S, longest_open_s=LONGEST_OPEN_S), GROWING),
        (CircuitBreaker(), ABANDONED),
    ],
    ids=["fixed", "growing", "abandoned"],
)
def test_what_each_step_returns(breaker: CircuitBreaker, steps: list[tuple[float, str, float | bool | None]]) -> None:
    """The breaker opens after two failures in a row, then admits one trial call, and closes after a success."""
    for number, (now, what, expected) in enumerate(steps):
        match what:
            case "ask":
                assert breaker.admits(now) == expected, number
            case "succeed":
                breaker.record_success()
            case "abandon":
                breaker.abandon_trial(now)
            case _:
                open_s = breaker.record_failure(now, AWAY, permanent=what == "fail for good")
                assert open_s == expected, number


def test_the_outage_lasts_until_a_trial_succeeds() -> None:
    """The outage begins with the first failure in a row, has the last failure's message, and ends when a trial
    succeeds.
    """
    breaker = CircuitBreaker(open_s=FIRST_OPEN_S)
    states, outages = [(breaker.is_closed, breaker.on_trial)], [breaker.outage]
    breaker.record_failure(1.0, SLOW)
    outages.append(breaker.outage)
    assert (breaker.problem, breaker.failures) == (SLOW, 1)
    breaker.record_failure(3.0, AWAY)
    states.append((breaker.is_closed, breaker.on_trial))
    assert breaker.outage == Outage(1.0, 3.0 + FIRST_OPEN_S, AWAY)
    assert breaker.admits(3.0 + FIRST_OPEN_S)
    states.append((breaker.is_closed, breaker.on_trial))
    assert breaker.outage == Outage(1.0, 3.0 + FIRST_OPEN_S + TRIAL_S, AWAY)
    breaker.record_success()
    outages.append(breaker.outage)
    assert outages == [None, None, None]
    assert (breaker.problem, breaker.failures) == (None, 0)
    states.append((breaker.is_closed, breaker.on_trial))
    assert states == [(True, False), (False, False), (False, True), (True, False)]


@given(steps=st.lists(st.sampled_from(["fail", "succeed", "ask"]), max_size=40))
def test_it_always_admits_again(steps: list[str]) -> None:
    """After the longest open time a call is admitted, and the breaker never opens before the threshold."""
    breaker, now, in_a_row = CircuitBreaker(open_s=FIRST_OPEN_S, longest_open_s=LONGEST_OPEN_S), 0.0, 0
    for step in steps:
        now += 1.0
        if step == "fail":
            in_a_row += 1
            open_s = breaker.record_failure(now, AWAY)
            assert (open_s > 0.0) == (in_a_row >= FAILURE_THRESHOLD)
            assert open_s <= LONGEST_OPEN_S
        elif step == "succeed":
            in_a_row = 0
            breaker.record_success()
            assert breaker.admits(now)
        else:
            breaker.admits(now)
    assert breaker.admits(now + LONGEST_OPEN_S + TRIAL_S)


@pytest.mark.parametrize(
    ("failures", "pause_s"), [(0, 0.5), (1, 1.0), (2, 2.0), (6, 32.0), (7, 60.0), (2_000, 60.0), (10**6, 60.0)]
)
def test_the_pause_grows_up_to_the_longest(failures: int, pause_s: float) -> None:
    """A server that was off overnight has failed a thousand times, which is no reason to give it up."""
    assert retry_pause_s(failures, first_s=1.0, longest_s=60.0) == pause_s


RATE, BURST = 3.0, 6.0


def test_a_burst_passes_then_the_rate() -> None:
    """Six pass at once, and then three a second."""
    bucket = TokenBucket(rate=RATE, burst=BURST)
    assert [bucket.take(10.0) for _ in range(8)] == [True] * 6 + [False] * 2
    assert [bucket.take(11.0) for _ in range(4)] == [True] * 3 + [False]


@given(st.lists(st.floats(min_value=-1, max_value=5), min_size=1, max_size=60))
def test_no_flood_gets_through(gaps: list[float]) -> None:
    """In any period at most the burst and the rate pass, also if the clock goes back."""
    bucket, now, latest, passed = TokenBucket(rate=RATE, burst=BURST), 0.0, 0.0, 0
    passed += bucket.take(now)
    for gap in gaps:
        now += gap
        latest = max(latest, now)
        passed += bucket.take(now)
    assert passed <= BURST + RATE * latest + 1e-6
