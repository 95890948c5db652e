"""The turn buffer is bounded, loses no turn that is still needed, and never renumbers turns (invariant 6 of
COMPACTION).
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction.model import Seq
from compaction.turn_buffer import CAPACITY, TurnBuffer
from tests.compaction.turn_store_contract import turn


def filled(count: int, *, capacity: int = CAPACITY) -> TurnBuffer:
    buffer = TurnBuffer(capacity=capacity)
    for seq in range(count):
        buffer.append(turn(seq))
    return buffer


def test_what_left_is_not_silently_missing() -> None:
    """Asking for turns that have left memory or do not exist yet is an error and never gives a shorter answer."""
    buffer = filled(300)
    buffer.release(Seq(240))
    with pytest.raises(ValueError, match="among"):
        buffer.between(Seq(79), Seq(90))
    with pytest.raises(ValueError, match="among"):
        buffer.between(Seq(290), Seq(301))


@given(st.lists(st.one_of(st.none(), st.integers(0, 400)), max_size=400), st.integers(0, 30))
def test_any_order_of_appends_and_releases(steps: list[int | None], capacity: int) -> None:
    """After any sequence of steps the newest turns are in memory. Only turns that were released and exceed the capacity
    are gone.
    """
    buffer = TurnBuffer(capacity=capacity)
    total = released = 0
    for step in steps:
        if step is None:
            buffer.append(turn(total))
            total += 1
        else:
            before = min(step, total)
            released = max(released, before)
            buffer.release(Seq(before))
        assert buffer.total == total
        assert buffer.first <= released
        assert buffer.first == 0 or total - buffer.first >= min(capacity, total)
        assert [each.seq for each in buffer.since(buffer.first)] == list(range(buffer.first, total))
