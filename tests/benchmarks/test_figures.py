"""Shares."""

from __future__ import annotations

from benchmarks.figures import share_of


def test_share_of_nothing_is_none() -> None:
    """A share of nothing is `None`, not zero."""
    assert share_of(0, 0) is None
    assert share_of(1, 4) == 0.25
