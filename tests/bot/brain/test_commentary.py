"""When a shared screen gives occasion to speak."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.brain.commentary import GOES_ON_EVERY_S, STALE_S, Commentary
from compaction.model import NoteReason


def commentary() -> Commentary:
    return Commentary(every_s=15, quiet_s=2.2)


@pytest.mark.parametrize("why", [NoteReason.SHARE_START, NoteReason.CUT, NoteReason.TEXT, NoteReason.INTERVAL])
def test_what_is_seen_gives_occasion_when_it_is_quiet(why: NoteReason) -> None:
    """Not before the pause is long enough, and not when it is long past."""
    comments = commentary()
    assert not comments.due(0, quiet_for_s=60)
    comments.noted(why, now=0)
    assert not comments.due(1, quiet_for_s=2.1)
    assert comments.due(1, quiet_for_s=2.2)
    assert not comments.due(STALE_S, quiet_for_s=60)
    assert not comments.waiting(STALE_S)


def test_who_asked_waits_for_an_answer_and_not_for_a_remark() -> None:
    """A look that somebody asked for is no occasion."""
    comments = commentary()
    comments.noted(NoteReason.ASKED, now=0)
    assert not comments.waiting(0)


def test_what_has_gone_by_is_no_occasion() -> None:
    """And keeps no later one from being one."""
    comments = commentary()
    comments.noted(NoteReason.SHARE_START, now=0)
    comments.gone_by()
    assert not comments.waiting(0)
    comments.noted(NoteReason.TEXT, now=1)
    assert comments.due(2, quiet_for_s=60)


def test_remarks_keep_their_distance() -> None:
    """Fifteen seconds from one to the next; an occasion that was not taken costs none."""
    comments = commentary()
    comments.noted(NoteReason.SHARE_START, now=0)
    comments.taken(3, asked=True)
    comments.noted(NoteReason.TEXT, now=4)
    assert not comments.due(17.9, quiet_for_s=60)
    assert comments.due(18, quiet_for_s=60)
    comments.taken(18, asked=False)
    comments.noted(NoteReason.CUT, now=19)
    assert comments.due(19, quiet_for_s=60)


def test_a_screen_that_merely_goes_on_is_remarked_rarely() -> None:
    """And takes the place of nothing better."""
    comments = commentary()
    comments.noted(NoteReason.CUT, now=0)
    comments.taken(0, asked=True)
    comments.noted(NoteReason.INTERVAL, now=20)
    assert not comments.due(20, quiet_for_s=60)
    comments.noted(NoteReason.TEXT, now=25)
    comments.noted(NoteReason.INTERVAL, now=40)
    assert comments.due(41, quiet_for_s=60)
    assert not comments.due(25 + STALE_S, quiet_for_s=60)
    comments.taken(41, asked=True)
    comments.noted(NoteReason.INTERVAL, now=41 + GOES_ON_EVERY_S - 1)
    assert comments.due(41 + GOES_ON_EVERY_S, quiet_for_s=60)


@given(st.lists(st.tuples(st.sampled_from(list(NoteReason)), st.floats(0, 10), st.floats(0, 10)), max_size=60))
def test_never_more_often_than_allowed(seen: list[tuple[NoteReason, float, float]]) -> None:
    """Whatever is seen, and however quiet it is."""
    comments, now, remarked = commentary(), 0.0, float("-inf")
    for why, gap, quiet in seen:
        now += gap
        comments.noted(why, now=now)
        if comments.due(now, quiet_for_s=quiet):
            assert quiet >= 2.2
            assert now - remarked >= 15
            remarked = now
            comments.taken(now, asked=True)
