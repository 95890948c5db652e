"""Shares and percentiles."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.figures import percentile, share_of


@given(st.lists(st.floats(-1e6, 1e6), min_size=1), st.floats(0.0, 1.0))
def test_percentile_is_one_of_the_values_and_enough_are_below(values: list[float], share: float) -> None:
    """A percentile is one of the values, and at least that share of the values does not exceed it."""
    found = percentile(values, share)
    assert found in values
    assert sum(value <= found for value in values) >= share * len(values) - 1e-3


def test_percentile_of_nothing_is_refused() -> None:
    """A percentile of no values raises `ValueError`."""
    with pytest.raises(ValueError, match="values"):
        percentile([], 0.5)


def test_share_of_nothing_is_none() -> None:
    """A share of nothing is `None`, not zero."""
    assert share_of(0, 0) is None
    assert share_of(1, 4) == 0.25
