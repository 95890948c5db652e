"""Which utterance is given up when more people speak than the recogniser keeps up with."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.room.conversation.backlog import UtteranceBacklog
from voice.listening.utterance import Utterance

ADA, BO, CY = 1, 2, 3


def said(user_id: int, number: int) -> Utterance:
    return Utterance(f"{user_id}-{number}", user_id, number, number + 1.0, number + 1.5, np.zeros(0, np.int16))


@pytest.mark.parametrize(
    ("speakers", "given_up"),
    [
        ((ADA, BO, CY), None),
        ((ADA, BO, BO, CY), "2-1"),  # Bo has two: the older one
        ((ADA, ADA, ADA, BO), "1-0"),
        ((BO, ADA, ADA, BO), "2-0"),  # both have two: who has waited longest
        ((ADA, BO, CY, ADA), "1-0"),  # who speaks again gives up their own
        ((ADA, BO, CY, 4), "1-0"),  # everybody has one
    ],
)
def test_who_has_the_most_waiting_loses_their_oldest(speakers: tuple[int, ...], given_up: str | None) -> None:
    backlog = UtteranceBacklog(3)
    shed = [backlog.add(said(user_id, number)) for number, user_id in enumerate(speakers)]
    assert [utterance.id for utterance in shed if utterance] == ([given_up] if given_up else [])


@given(st.lists(st.one_of(st.integers(1, 6), st.none()), max_size=80), st.integers(1, 8))
def test_nothing_else_is_lost(steps: list[int | None], size: int) -> None:
    """Whatever comes and is taken: each utterance is taken, given up or waiting, once. Nobody loses their only one
    while somebody else has two; what is left stays in order; and the bound holds.
    """
    backlog, waiting = UtteranceBacklog(size), list[Utterance]()
    for number, user_id in enumerate(steps):
        if user_id is None:
            if waiting:
                assert backlog.take() is waiting.pop(0)
            continue
        new = said(user_id, number)
        waiting.append(new)
        given_up = backlog.add(new)
        assert (given_up is None) == (len(waiting) <= size)
        if given_up is not None:
            counts = Counter(utterance.user_id for utterance in waiting)
            assert counts[given_up.user_id] == max(counts.values())
            assert given_up is next(one for one in waiting if one.user_id == given_up.user_id)
            waiting.remove(given_up)
        assert len(backlog) == len(waiting) <= size
    assert [backlog.take() for _ in range(len(backlog))] == waiting
    with pytest.raises(IndexError):
        backlog.take()
