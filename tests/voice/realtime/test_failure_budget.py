"""When speech-to-speech is given up, and when it is tried again."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from voice.realtime.failure_budget import MAX_RETRY_DELAY_S, FailureBudget


def _patience(failures_in_a_row: int = 3, rest_s: float = 60.0) -> FailureBudget:
    return FailureBudget(failures_in_a_row=failures_in_a_row, rest_s=rest_s)


def test_failures_in_a_row_are_counted_whatever_failed() -> None:
    """Two lost connections and an answer that did not come are three."""
    patience = _patience()
    patience.lost()
    patience.lost()
    assert not patience.exhausted
    patience.failed()
    assert (patience.exhausted, patience.failures) == (True, 3)


def test_who_hears_and_never_answers_is_given_up() -> None:
    """Every word comes back in writing, no answer does: connections are forgiven, answers are not."""
    patience = _patience()
    for _ in range(3):
        patience.connected()
        patience.failed()
    assert patience.exhausted


def test_who_answers_and_writes_nothing_down_is_given_up() -> None:
    """Everybody waits in vain for what was said; one text that comes forgives it, an answer does not."""
    patience = _patience()
    for _ in range(2):
        patience.unwritten()
        patience.answered()
    patience.wrote()
    for _ in range(3):
        assert not patience.exhausted
        patience.answered()
        patience.unwritten()
    assert patience.exhausted
    patience.came_back()
    assert not patience.exhausted


def test_an_answer_forgives_everything() -> None:
    """Also what it was given up for before; what is not written down is another matter."""
    patience = _patience()
    patience.lost()
    patience.failed()
    patience.came_back()
    patience.answered()
    assert (patience.failures, patience.exhausted, patience.rest_s) == (0, False, 60.0)
    patience.lost()
    assert not patience.exhausted


def test_back_after_a_rest_it_has_one_chance() -> None:
    """Nobody waits three times for the same trouble."""
    patience = _patience()
    patience.came_back()
    assert not patience.exhausted
    patience.lost()
    assert patience.exhausted


def test_it_is_left_alone_longer_each_time_it_fails_at_once() -> None:
    """A service that takes connections and never answers is tried less and less; one that is away, evenly."""
    patience = _patience()
    rests = []
    for _ in range(8):
        rests.append(patience.rest_s)
        patience.came_back()
        patience.failed()
    assert rests == [60.0, 60.0, 120.0, 240.0, 480.0, 960.0, MAX_RETRY_DELAY_S, MAX_RETRY_DELAY_S]


@given(
    st.integers(1, 20),
    st.floats(1, 3_600),
    st.lists(
        st.sampled_from(["lost", "failed", "unwritten", "connected", "wrote", "answered", "came_back"]), max_size=60
    ),
)
def test_it_rests_within_bounds_and_an_answer_ends_all(most: int, rest_s: float, happened: list[str]) -> None:
    """Whatever happens in whatever order."""
    patience = _patience(most, rest_s)
    for what in happened:
        getattr(patience, what)()
        assert rest_s <= patience.rest_s <= max(rest_s, MAX_RETRY_DELAY_S)
        assert patience.exhausted or patience.failures < most
    patience.wrote()
    patience.answered()
    assert not patience.exhausted
    assert patience.rest_s == rest_s
