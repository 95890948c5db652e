"""The timeline is bounded, loses nothing that is needed, and its numbers never shift (invariant 6)."""

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
    """The 300th turn is number 299 whether the first is in memory or not."""
    timeline = filled(300)
    assert timeline.release(Seq(240)) == 80
    assert (timeline.first, timeline.total) == (80, 300)
    assert timeline.between(Seq(240), Seq(242)) == (turn(240), turn(241))
    assert [each.seq for each in timeline.since(Seq(297))] == [297, 298, 299]
    timeline.append(turn(300))
    assert timeline.last(1) == (turn(300),)


def test_what_is_not_folded_stays_over_capacity() -> None:
    """When folding is behind, the timeline grows rather than lose a turn."""
    timeline = filled(500)
    assert timeline.release(Seq(30)) == 30
    assert timeline.first == 30
    assert len(timeline.since(Seq(30))) == 470


def test_folded_turns_stay_while_there_is_room() -> None:
    """Below its capacity the timeline keeps folded turns too."""
    timeline = filled(CAPACITY)
    assert timeline.release(Seq(100)) == 0
    assert timeline.between(Seq(0), Seq(1)) == (turn(0),)


def test_what_left_is_not_silently_missing() -> None:
    """Asking for turns that have left, or are yet to come, is an error, never a shorter answer."""
    timeline = filled(300)
    timeline.release(Seq(240))
    with pytest.raises(ValueError, match="not all among"):
        timeline.between(Seq(79), Seq(90))
    with pytest.raises(ValueError, match="not all among"):
        timeline.between(Seq(290), Seq(301))


def test_numbers_are_not_reused_or_skipped() -> None:
    """Only the next number may follow."""
    timeline = filled(3)
    for wrong in (2, 4):
        with pytest.raises(ValueError, match="can't follow"):
            timeline.append(turn(wrong))


def test_restored_timeline_goes_on_with_its_numbers() -> None:
    """A window read back from the store starts at the cursor and takes the next turn."""
    timeline, missing = Timeline.restored([turn(seq) for seq in range(40, 75)], first=Seq(40), total=75)
    assert missing == ()
    assert (timeline.first, timeline.total) == (40, 75)
    timeline.append(turn(75))
    assert timeline.last(2) == (turn(74), turn(75))


def test_a_hole_in_the_store_becomes_tombstones() -> None:
    """Words that are lost already don't cost the numbers of all others."""
    timeline, missing = Timeline.restored([turn(3), turn(6)], first=Seq(3), total=8)
    assert missing == (4, 5, 7)
    assert [each.tombstone for each in timeline.since(Seq(3))] == [False, True, True, False, True]
    assert [each.seq for each in timeline.since(Seq(3))] == [3, 4, 5, 6, 7]


def test_empty_timeline() -> None:
    """A new session has no turns and says so."""
    timeline = Timeline()
    assert (timeline.first, timeline.total, timeline.last(5)) == (0, 0, ())
    assert timeline.release(Seq(10)) == 0


@given(st.lists(st.one_of(st.none(), st.integers(0, 400)), max_size=400), st.integers(0, 30))
def test_any_order_of_appends_and_releases(steps: list[int | None], capacity: int) -> None:
    """Whatever happens, the newest turns are there, and only what was released and over capacity is gone."""
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
