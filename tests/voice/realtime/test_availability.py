"""When a speech-to-speech session is given up, and when it is in use again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voice.errors import RealtimeError
from voice.realtime.availability import MAX_RETRY_DELAY_S, Availability, RealtimeWork

BROKEN = RealtimeError("The line broke.")
REFUSED = RealtimeError("The key is refused.", retryable=False)
CONNECTION, TRANSCRIPTION, REPLY = RealtimeWork.CONNECTION, RealtimeWork.TRANSCRIPTION, RealtimeWork.REPLY
# In a row of events: small letters are failures, capitals successes.
WORK = {"c": CONNECTION, "t": TRANSCRIPTION, "r": REPLY}


def _availability(failures_in_a_row: int = 3) -> Availability:
    return Availability(failures_in_a_row=failures_in_a_row, retry_delay_s=60.0)


def _play(availability: Availability, happened: str) -> None:
    for what in happened:
        if what.isupper():
            availability.record_success(WORK[what.lower()])
        else:
            availability.record_failure(WORK[what], BROKEN)


def _recover(availability: Availability) -> None:
    availability.on_trial = True
    assert availability.record_recovery()


@pytest.mark.parametrize(
    ("happened", "given_up"),
    [
        ("cc", False),
        # Whatever failed.
        ("ccr", True),
        ("ccCc", False),
        # It hears and never answers.
        ("CrCrCr", True),
        # It answers and writes nothing down.
        ("tRtRt", True),
        ("tRtTt", False),
        # An answer forgives all but missing transcriptions.
        ("crRcr", False),
        ("ttcRt", True),
    ],
)
def test_failures_in_a_row_are_counted(happened: str, given_up: bool) -> None:
    availability = _availability()
    _play(availability, happened)
    assert (availability.given_up is not None) is given_up


def test_too_many_failures_give_it_up_once() -> None:
    """The failure that reaches the limit gives the session up; later ones change nothing."""
    availability = _availability(2)
    counted = [
        availability.record_failure(CONNECTION, BROKEN),
        availability.record_failure(REPLY, BROKEN),
        availability.record_failure(TRANSCRIPTION, REFUSED),
    ]
    assert counted == [False, True, False]
    assert (availability.given_up, availability.ended, availability.failures) == (BROKEN, False, 2)


@pytest.mark.parametrize("work", RealtimeWork)
def test_what_no_retry_can_mend_ends_it_at_once(work: RealtimeWork) -> None:
    availability = _availability()
    assert availability.record_failure(work, REFUSED)
    assert (availability.given_up, availability.ended) == (REFUSED, True)


def test_an_accepted_trial_puts_it_in_use_again_with_one_chance() -> None:
    availability = _availability(2)
    assert not availability.record_recovery()
    _play(availability, "cc")
    _recover(availability)
    assert (availability.given_up, availability.on_trial, availability.failures) == (None, False, 0)
    assert availability.record_failure(CONNECTION, BROKEN)


def test_it_is_left_alone_longer_each_time_it_fails_at_once() -> None:
    """The delay doubles with each recovery that fails before a reply. It stays the same while a service is away."""
    availability = _availability(1)
    delays = []
    for _ in range(8):
        _play(availability, "r")
        delays.append(availability.retry_delay_s)
        _recover(availability)
    assert delays == [60.0, 60.0, 120.0, 240.0, 480.0, 960.0, MAX_RETRY_DELAY_S, MAX_RETRY_DELAY_S]


def test_the_wait_grows_from_the_second_failure_on() -> None:
    """The next attempt after a first failure is made at once; later ones wait longer and longer, up to a limit."""
    availability = _availability(99)
    waits = [availability.backoff_s]
    for _ in range(7):
        _play(availability, "c")
        waits.append(availability.backoff_s)
    assert waits == [0.0, 0.0, 0.5, 1.0, 2.0, 4.0, 5.0, 5.0]


@given(st.integers(1, 20), st.text("ctrCTR!", max_size=60))
def test_it_rests_within_bounds_and_an_answer_ends_all(most: int, happened: str) -> None:
    """After any events the delay stays within its bounds, and a transcription and a reply put the service in use."""
    availability = _availability(most)
    for what in happened:
        if what == "!":
            _recover(availability)
        else:
            _play(availability, what)
        assert 60.0 <= availability.retry_delay_s <= MAX_RETRY_DELAY_S
        assert availability.given_up is not None or availability.failures < most
    _recover(availability)
    _play(availability, "TR")
    assert (availability.failures, availability.retry_delay_s) == (0, 60.0)
