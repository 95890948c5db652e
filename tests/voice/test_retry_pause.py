"""The pause before the next trial grows, and stays the longest one however long a service is away."""

from __future__ import annotations

import pytest

from voice.retry_pause import retry_pause_s


@pytest.mark.parametrize(
    ("failures", "pause_s"), [(0, 0.5), (1, 1.0), (2, 2.0), (6, 32.0), (7, 60.0), (2_000, 60.0), (10**6, 60.0)]
)
def test_the_pause_grows_up_to_the_longest(failures: int, pause_s: float) -> None:
    """A server that was off overnight has failed a thousand times, which is no reason to give it up."""
    assert retry_pause_s(failures, first_s=1.0, longest_s=60.0) == pause_s
