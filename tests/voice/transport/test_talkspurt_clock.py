"""The time line of one talkspurt."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voice.transport.talkspurt_clock import CLOCK_HZ, TalkspurtClock, ticks_between

FRAME_TICKS = 960
WRAP = 1 << 32


@given(st.integers(0, WRAP - 1), st.integers(-(WRAP // 2), WRAP // 2 - 1))
def test_ticks_between_allows_for_wrap_around(earlier: int, ticks: int) -> None:
    """The difference of two timestamps is exact up to half of their range, wherever they wrap around."""
    assert ticks_between(earlier, (earlier + ticks) % WRAP) == ticks


def test_the_packet_with_the_least_delay_gives_the_origin() -> None:
    """A second packet that came early shows that the first one was late: the talkspurt began before it arrived."""
    first, second = (0, 10.0), (FRAME_TICKS, 10.005)
    spurt = TalkspurtClock.begin(*first, [first, second])
    assert spurt.at(0) == pytest.approx(10.005 - FRAME_TICKS / CLOCK_HZ)


def test_a_packet_of_another_numbering_gives_no_origin() -> None:
    """A packet whose timestamp is a second or more away does not belong to the talkspurt."""
    first, other = (0, 10.0), (CLOCK_HZ, 10.0)
    assert TalkspurtClock.begin(*first, [first, other]).at(0) == 10.0


def test_jitter_leaves_the_time_line_and_a_drifting_clock_moves_it() -> None:
    """A packet may be early by 0.1 s or late by a second; beyond that, its arrival is its new time."""
    spurt = TalkspurtClock.begin(0, 10.0, [(0, 10.0)])
    spurt.fit(0, 10.9)
    assert spurt.at(0) == 10.0
    spurt.fit(0, 11.2)
    assert spurt.at(0) == pytest.approx(11.2)


def test_a_shift_takes_no_time() -> None:
    """After a jump of the sender's timestamps, the next packet follows the last one directly."""
    spurt = TalkspurtClock.begin(0, 10.0, [(0, 10.0)])
    spurt.advance(0, FRAME_TICKS, is_silence=False)
    end = spurt.ends_at
    spurt.shift(300)
    assert spurt.at(FRAME_TICKS + 300) == pytest.approx(end)
