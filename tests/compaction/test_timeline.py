"""The timeline is bounded, loses no turn that is still needed, and never renumbers turns (invariant 6 of
COMPACTION).
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction.model import Seq
from compaction.timeline import CAPACITY, Timeline
from tests.compaction.turn_store_contract import turn


def filled(count: int, *, capacity: int = CAPACITY) -> Timeline:
    timeline = Timeline(capacity=capacity)
    for seq in range(count):
        timeline.append(turn(seq))
    return timeline


def test_turns_are_found_by_number_after_others_left() -> None:
    """A turn keeps its number after older turns have left memory."""
    timeline = filled(300)
    assert timeline.release(Seq(240)) == 80
    assert (timeline.first, timeline.total) == (80, 300)
    assert timeline.between(Seq(240), Seq(242)) == (turn(240), turn(241))
    assert [each.seq for each in timeline.since(Seq(297))] == [297, 298, 299]
    timeline.append(turn(300))
    assert timeline.last(1) == (turn(300),)


def test_what_left_is_not_silently_missing() -> None:
    """Asking for turns that have left memory or do not exist yet is an error and never gives a shorter answer."""
    timeline = filled(300)
    timeline.release(Seq(240))
    with pytest.raises(ValueError, match="among"):
        timeline.between(Seq(79), Seq(90))
    with pytest.raises(ValueError, match="among"):
        timeline.between(Seq(290), Seq(301))


def test_numbers_are_not_reused_or_skipped() -> None:
    """A turn with any number other than the next one is refused."""
    timeline = filled(3)
    for wrong in (2, 4):
        with pytest.raises(ValueError, match="can't follow"):
            timeline.append(turn(wrong))


@given(st.lists(st.one_of(st.none(), st.integers(0, 400)), max_size=400), st.integers(0, 30))
def test_any_order_of_appends_and_releases(steps: list[int | None], capacity: int) -> None:
    """After any sequence of steps the newest turns are in memory. Only turns that were released and exceed the capacity
    are gone.
    """
    timeline = Timeline(capacity=capacity)
    total = released = 0
    for step in steps:
        if step is None:
            timeline.append(turn(total))
            total += 1
        else:
            before = min(step, total)
            released = max(released, before)
            timeline.release(Seq(before))
        assert timeline.total == total
        assert timeline.first <= released
        assert timeline.first == 0 or total - timeline.first >= min(capacity, total)
        assert [each.seq for each in timeline.since(timeline.first)] == list(range(timeline.first, total))
