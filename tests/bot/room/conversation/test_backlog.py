"""Which utterance is given up when more people speak than the recogniser keeps up with."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.room.conversation.hearing import UtteranceBacklog
from voice.audio import LISTEN_RATE_HZ
from voice.listening.utterance import Utterance

ADA, BO, CY = 1, 2, 3


def said(user_id: int, number: int, *, sound_s: float = 1.0) -> Utterance:
    pcm = np.zeros(round(sound_s * LISTEN_RATE_HZ), np.int16)
    return Utterance(f"{user_id}-{number}", user_id, number, number + 1.0, number + 1.5, pcm)


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
    backlog = UtteranceBacklog(3, sound_s=60.0)
    shed = [utterance for number, user_id in enumerate(speakers) for utterance in backlog.add(said(user_id, number))]
    assert [utterance.id for utterance in shed] == ([given_up] if given_up else [])


@given(
    st.lists(st.one_of(st.tuples(st.integers(1, 6), st.integers(0, 4)), st.none()), max_size=80),
    st.integers(1, 8),
    st.integers(1, 12),
)
def test_nothing_else_is_lost(steps: list[tuple[int, int] | None], size: int, sound_s: int) -> None:
    """Whatever comes and is taken: each utterance is taken, given up or waiting, once. Nobody loses their only one
    while somebody else has two; what is left stays in order; and both bounds hold.
    """

    def fits() -> bool:
        samples = sum(len(utterance.pcm) for utterance in waiting)
        return len(waiting) <= size and (samples <= sound_s * LISTEN_RATE_HZ or len(waiting) == 1)

    backlog, waiting = UtteranceBacklog(size, sound_s=float(sound_s)), list[Utterance]()
    for number, step in enumerate(steps):
        if step is None:
            if waiting:
                assert backlog.take() is waiting.pop(0)
            continue
        new = said(step[0], number, sound_s=float(step[1]))
        waiting.append(new)
        for given_up in backlog.add(new):
            assert not fits()
            counts = Counter(utterance.user_id for utterance in waiting)
            assert counts[given_up.user_id] == max(counts.values())
            assert given_up is next(one for one in waiting if one.user_id == given_up.user_id)
            waiting.remove(given_up)
        assert fits()
        assert len(backlog) == len(waiting)
    assert [backlog.take() for _ in range(len(backlog))] == waiting
    with pytest.raises(IndexError):
        backlog.take()


def test_it_tells_since_when_the_first_one_waits() -> None:
    """Also when the first one was given up for another one; nothing while none waits."""
    backlog = UtteranceBacklog(2, sound_s=60.0)
    since = [backlog.waits_since]
    for number in (0, 1, 2):
        backlog.add(said(ADA, number))
        since.append(backlog.waits_since)
    assert since == [None, 1.5, 1.5, 2.5]
