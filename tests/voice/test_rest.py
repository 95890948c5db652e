"""Leaving alone what failed: when it begins, who tries again, and that a success ends it."""

from __future__ import annotations

from voice.rest import Rest, Resting


def told(rest: Rest) -> Resting | None:
    """Return why it rests, now."""
    return rest.resting


def test_it_begins_after_so_many_failures_in_a_row_and_one_call_tries_again() -> None:
    """Those that come while one tries are not called; a success forgets the failures."""
    now, tries = [0.0], list[float]()
    rest = Rest(failures_in_a_row=2, rest_s=60.0, monotonic=lambda: now[0], on_try=lambda: tries.append(now[0]))
    assert (rest.begin(), rest.failed("It is away."), rest.begin(), told(rest)) == (True, 1, True, None)
    now[0] = 5.0
    assert rest.failed("It is gone.") == 2
    assert told(rest) == Resting(0.0, 65.0, "It is gone.")
    now[0] = 64.9
    assert not rest.begin()
    now[0] = 65.0
    assert [rest.begin(), rest.begin()] == [True, False]
    assert tries == [65.0]
    assert told(rest) == Resting(0.0, 125.0, "It is gone.")
    rest.succeeded()
    assert (told(rest), rest.problem) == (None, "")
    assert [rest.begin(), rest.begin()] == [True, True]
    now[0] = 70.0
    assert [rest.failed("It broke."), rest.failed("It broke.")] == [1, 2]
    assert told(rest) == Resting(70.0, 130.0, "It broke.")
