"""The limit of how often something may happen."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from voice.token_bucket import TokenBucket

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
