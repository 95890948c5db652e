"""Refused requests are counted, and told at most once a minute."""

from __future__ import annotations

import itertools
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from bot.web.refusals import LOG_EVERY_S, RefusalCounter, WebRefusal


@given(st.lists(st.tuples(st.sampled_from(WebRefusal), st.floats(0, 30)), max_size=60))
def test_every_refusal_is_told_once(refusals: list[tuple[WebRefusal, float]]) -> None:
    """Whatever the times, each refusal is in exactly one line, and two lines are at least a minute apart."""
    counter, told, lines, now = RefusalCounter(), Counter[str](), list[float](), 0.0
    for refusal, pause_s in refusals:
        now += pause_s
        if figures := counter.count(refusal, now):
            told.update(figures)
            lines.append(now)
    told.update(counter.rest())
    assert told == Counter(f"{refusal.value}_count" for refusal, _ in refusals)
    assert all(later - earlier >= LOG_EVERY_S for earlier, later in itertools.pairwise(lines))
    assert counter.rest() == {}
