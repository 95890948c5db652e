"""Leaving alone what failed: when it begins, who tries again, and that a success ends it."""

from __future__ import annotations

from voice.rest import Rest


def test_it_begins_after_so_many_failures_in_a_row_and_one_call_tries_again() -> None:
    """Those that come while one tries are not called; a success forgets the failures."""
    now, tries = [0.0], list[float]()
    rest = Rest(failures_in_a_row=2, rest_s=60.0, monotonic=lambda: now[0], on_try=lambda: tries.append(now[0]))
    assert (rest.begin(), rest.failed(), rest.begin(), rest.failed()) == (True, 1, True, 2)
    now[0] = 59.9
    assert not rest.begin()
    now[0] = 60.0
    assert [rest.begin(), rest.begin()] == [True, False]
    assert tries == [60.0]
    rest.succeeded()
    assert [rest.begin(), rest.begin()] == [True, True]
    assert rest.failed() == 1
