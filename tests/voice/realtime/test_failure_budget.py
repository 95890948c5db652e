"""When a room gives up speech-to-speech, and when it tries again."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from voice.realtime.failure_budget import MAX_RETRY_DELAY_S, FailureBudget

OUTCOMES = (
    "record_connection_failure",
    "record_reply_failure",
    "record_transcription_failure",
    "record_connection",
    "record_transcription",
    "record_reply",
    "record_recovery",
)


def _budget(failures_in_a_row: int = 3, retry_delay_s: float = 60.0) -> FailureBudget:
    return FailureBudget(failures_in_a_row=failures_in_a_row, retry_delay_s=retry_delay_s)


def test_failures_in_a_row_are_counted_whatever_failed() -> None:
    """Failures in a row are added up, whatever failed: two lost connections and one missing reply are three."""
    budget = _budget()
    budget.record_connection_failure()
    budget.record_connection_failure()
    assert not budget.exhausted
    budget.record_reply_failure()
    assert (budget.exhausted, budget.failures) == (True, 3)


def test_who_hears_and_never_answers_is_given_up() -> None:
    """A service that connects but never replies is given up: a good connection does not reset the failed replies."""
    budget = _budget()
    for _ in range(3):
        budget.record_connection()
        budget.record_reply_failure()
    assert budget.exhausted


def test_who_answers_and_writes_nothing_down_is_given_up() -> None:
    """A service that replies but never transcribes is given up. A transcription resets that count, and a reply does
    not.
    """
    budget = _budget()
    for _ in range(2):
        budget.record_transcription_failure()
        budget.record_reply()
    budget.record_transcription()
    for _ in range(3):
        assert not budget.exhausted
        budget.record_reply()
        budget.record_transcription_failure()
    assert budget.exhausted
    budget.record_recovery()
    assert not budget.exhausted


def test_an_answer_forgives_everything() -> None:
    """A reply resets the connection failures, the reply failures and the retry delay, but not missing
    transcriptions.
    """
    budget = _budget()
    budget.record_connection_failure()
    budget.record_reply_failure()
    budget.record_recovery()
    budget.record_reply()
    assert (budget.failures, budget.exhausted, budget.retry_delay_s) == (0, False, 60.0)
    budget.record_connection_failure()
    assert not budget.exhausted


def test_back_after_a_rest_it_has_one_chance() -> None:
    """After a recovery, one failure is enough to give the service up again."""
    budget = _budget()
    budget.record_recovery()
    assert not budget.exhausted
    budget.record_connection_failure()
    assert budget.exhausted


def test_it_is_left_alone_longer_each_time_it_fails_at_once() -> None:
    """The delay doubles with each recovery that fails before a reply. It stays the same while a service is away."""
    budget = _budget()
    delays = []
    for _ in range(8):
        delays.append(budget.retry_delay_s)
        budget.record_recovery()
        budget.record_reply_failure()
    assert delays == [60.0, 60.0, 120.0, 240.0, 480.0, 960.0, MAX_RETRY_DELAY_S, MAX_RETRY_DELAY_S]


@given(
    st.integers(1, 20),
    st.floats(1, 3_600),
    st.lists(
        st.sampled_from(OUTCOMES),
        max_size=60,
    ),
)
def test_it_rests_within_bounds_and_an_answer_ends_all(most: int, retry_delay_s: float, happened: list[str]) -> None:
    """After any events the delay stays within its bounds, and a transcription and a reply put the service
    back in use.
    """
    budget = _budget(most, retry_delay_s)
    for what in happened:
        getattr(budget, what)()
        assert retry_delay_s <= budget.retry_delay_s <= max(retry_delay_s, MAX_RETRY_DELAY_S)
        assert budget.exhausted or budget.failures < most
    budget.record_transcription()
    budget.record_reply()
    assert not budget.exhausted
    assert budget.retry_delay_s == retry_delay_s


def test_it_may_fail_for_months() -> None:
    """A service that comes back and fails before its first reply, a thousand times and more, is still tried again."""
    budget = _budget()
    for _ in range(2_000):
        budget.record_recovery()
    assert budget.retry_delay_s == MAX_RETRY_DELAY_S
