"""A model that fails rests, is tried by one, and is asked again when it works."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bot.llm.breaker import FAILURES, FIRST_REST_S, LONGEST_REST_S, TRIAL_S, Breaker
from voice.rest import Resting


def test_one_failure_is_a_hiccup() -> None:
    """The second in a row is not."""
    breaker = Breaker()
    assert breaker.failed(0.0) == 0.0
    assert breaker.admits(0.0)
    breaker.worked()
    assert breaker.failed(1.0) == 0.0
    assert breaker.failed(2.0) == FIRST_REST_S
    assert not breaker.admits(2.0 + FIRST_REST_S - 0.1)


def test_a_rested_model_is_tried_by_one() -> None:
    """The others go elsewhere until it is known; a trial that comes to nothing ends."""
    breaker = Breaker()
    breaker.failed(0.0, for_good=True)
    assert breaker.admits(FIRST_REST_S)
    assert not breaker.admits(FIRST_REST_S)
    assert breaker.admits(FIRST_REST_S + TRIAL_S)
    breaker.worked()
    assert breaker.well
    assert [breaker.admits(FIRST_REST_S) for _ in range(2)] == [True, True]


def test_why_it_rests_is_known() -> None:
    """Since its first failure in a row, until it works; also while somebody tries it."""
    breaker = Breaker()
    assert (breaker.failed(1.0, problem="It is slow."), breaker.resting) == (0.0, None)
    breaker.failed(3.0, problem="It is away.")
    assert breaker.resting == Resting(1.0, 3.0 + FIRST_REST_S, "It is away.")
    assert breaker.admits(3.0 + FIRST_REST_S)
    assert breaker.resting == Resting(1.0, 3.0 + FIRST_REST_S + TRIAL_S, "It is away.")
    breaker.worked()
    assert breaker.resting is None


def test_rests_grow() -> None:
    """Up to some minutes."""
    breaker = Breaker()
    rests = [breaker.failed(0.0, for_good=True) for _ in range(8)]
    assert rests[:3] == [FIRST_REST_S, 2 * FIRST_REST_S, 4 * FIRST_REST_S]
    assert rests[-1] == LONGEST_REST_S


@given(steps=st.lists(st.sampled_from(["fail", "work", "wait"]), max_size=40))
def test_it_always_admits_again(steps: list[str]) -> None:
    """Whatever happened, after the longest rest it is asked; and it never rests before the second failure in a row."""
    breaker, now, in_a_row = Breaker(), 0.0, 0
    for step in steps:
        now += 1.0
        if step == "fail":
            in_a_row += 1
            rested = breaker.failed(now)
            assert not rested or in_a_row >= FAILURES
        elif step == "work":
            in_a_row = 0
            breaker.worked()
            assert breaker.admits(now)
    assert breaker.admits(now + LONGEST_REST_S + TRIAL_S)
