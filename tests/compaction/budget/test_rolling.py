"""Eviction removes the oldest turns, keeps the newest ten and reports what it removed (spec 2)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction.budget.trim import rolling_evict
from compaction.payload import PartKind, PayloadPart


def said(*costs: int) -> list[PayloadPart]:
    return [
        PayloadPart("user", PartKind.TURN, None, None, cost, f"m{number}", float(number) if number else None)
        for number, cost in enumerate(costs)
    ]


@pytest.mark.covers("2.2", "2.5")
def test_oldest_leave_down_to_the_target() -> None:
    """Messages of 300 tokens exceed the limit of 250, so the oldest ones are evicted until four fifths of the limit are
    left.
    """
    messages = said(*[10] * 30)
    result = rolling_evict(messages, max_context_tokens=250)
    assert result.kept_tokens == 200
    assert (result.evicted_count, result.evicted_tokens) == (10, 100)
    # The first message has no time.
    assert (result.first_evicted_timestamp, result.last_evicted_timestamp) == (1.0, 9.0)
    assert result.kept == tuple(messages[10:])
    assert result.evicted == tuple(messages[:10])


@pytest.mark.covers("2.2")
def test_newest_are_kept_even_when_too_much() -> None:
    """The newest ten messages are kept even above the limit, or as many as the caller asks for."""
    messages = said(*[100] * 15)
    assert len(rolling_evict(messages, max_context_tokens=50).kept) == 10
    assert len(rolling_evict(messages, max_context_tokens=50, min_keep_messages=3).kept) == 3
    assert rolling_evict(messages, max_context_tokens=50, min_keep_messages=0).kept == ()


@pytest.mark.covers("2.5")
@given(
    st.lists(st.integers(0, 500), max_size=80),
    st.integers(0, 5_000),
    st.floats(0.1, 1.0),
    st.integers(0, 20),
)
def test_counts_add_up(costs: list[int], limit: int, target: float, keep: int) -> None:
    """Kept and evicted messages together are all messages in order, and no more is evicted than needed."""
    messages = said(*costs)
    result = rolling_evict(messages, max_context_tokens=limit, target_utilization=target, min_keep_messages=keep)
    assert [*result.evicted, *result.kept] == messages
    assert result.evicted_tokens + result.kept_tokens == sum(costs)
    assert len(result.kept) >= min(keep, len(messages))
    if result.evicted:
        assert sum(costs) > limit
        assert result.kept_tokens + result.evicted[-1].tokens > int(limit * target)
