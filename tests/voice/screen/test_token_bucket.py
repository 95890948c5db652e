"""The limit of pictures per second."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from voice.screen.token_bucket import BURST, FRAMES_PER_S, TokenBucket


def test_a_burst_passes_then_the_rate() -> None:
    """Six pictures pass at once, and then three a second."""
    bucket = TokenBucket()
    assert [bucket.take(10.0) for _ in range(8)] == [True] * 6 + [False] * 2
    assert [bucket.take(11.0) for _ in range(4)] == [True] * 3 + [False]


@given(st.lists(st.floats(min_value=-1, max_value=5), min_size=1, max_size=60))
def test_no_flood_gets_through(gaps: list[float]) -> None:
    """In any period at most the burst and the rate pass, also if the clock goes back."""
    bucket, now, latest, passed = TokenBucket(), 0.0, 0.0, 0
    passed += bucket.take(now)
    for gap in gaps:
        now += gap
        latest = max(latest, now)
        passed += bucket.take(now)
    assert passed <= BURST + FRAMES_PER_S * latest + 1e-6
