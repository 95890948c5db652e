"""When a speech-to-speech session is given up, and when it is in use again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from voice.errors import RealtimeError
from voice.realtime.availability import BACKOFF_S, Availability
from voice.realtime.failure_budget import FailureBudget

if TYPE_CHECKING:
    from collections.abc import Callable

BROKEN = RealtimeError("The line broke.")
REFUSED = RealtimeError("The key is refused.", retryable=False)


def _availability(failures_in_a_row: int = 3) -> Availability:
    return Availability(FailureBudget(failures_in_a_row=failures_in_a_row, retry_delay_s=60.0))


def test_too_many_failures_give_it_up_once() -> None:
    """The failure that reaches the limit gives the session up; later ones change nothing."""
    availability = _availability(2)
    counted = [
        availability.record_connection_failure(BROKEN),
        availability.record_reply_failure(BROKEN),
        availability.record_transcription_failure(REFUSED),
    ]
    assert counted == [False, True, False]
    assert (availability.given_up, availability.ended, availability.failures) == (BROKEN, False, 2)


@pytest.mark.parametrize(
    "record",
    [
        Availability.record_connection_failure,
        Availability.record_reply_failure,
        Availability.record_transcription_failure,
    ],
)
def test_what_no_retry_can_mend_ends_it_at_once(record: Callable[[Availability, RealtimeError], bool]) -> None:
    """One failure that a retry cannot mend gives the session up for good."""
    availability = _availability()
    assert record(availability, REFUSED)
    assert (availability.given_up, availability.ended) == (REFUSED, True)


def test_an_accepted_trial_puts_it_in_use_again() -> None:
    """A connection after the session was given up is a trial, and has succeeded when the server accepts it."""
    availability = _availability(1)
    availability.begin_connection()
    assert (availability.on_trial, availability.record_recovery()) == (False, False)
    availability.record_connection_failure(BROKEN)
    availability.end_connection()
    availability.begin_connection()
    assert availability.on_trial
    assert availability.record_recovery()
    assert (availability.given_up, availability.on_trial, availability.failures) == (None, False, 0)


def test_a_trial_ends_with_its_connection() -> None:
    """A trial that the server did not accept leaves the session given up."""
    availability = _availability(1)
    availability.record_connection_failure(BROKEN)
    availability.begin_connection()
    availability.end_connection()
    assert (availability.on_trial, availability.record_recovery(), availability.given_up) == (False, False, BROKEN)


def test_it_can_be_given_up_for_good_later() -> None:
    """A trial may find that no retry can help any more."""
    availability = _availability(1)
    availability.record_connection_failure(BROKEN)
    availability.give_up(REFUSED)
    assert (availability.given_up, availability.ended) == (REFUSED, True)


def test_the_wait_grows_from_the_second_failure_on() -> None:
    """The next attempt after a first failure is made at once; later ones wait longer and longer, up to a limit."""
    availability = _availability(99)
    waits = [availability.backoff_s]
    for _ in range(len(BACKOFF_S) + 2):
        availability.record_connection_failure(BROKEN)
        waits.append(availability.backoff_s)
    assert waits == [0.0, 0.0, *BACKOFF_S, BACKOFF_S[-1]]
