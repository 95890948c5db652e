"""Inputs to the model are kept until they become a turn; inputs that became none are reported."""

from __future__ import annotations

import numpy as np

from bot.realtime.items import MOST_INPUTS, Inputs, RealtimeInput
from bot.words import Words

WORDS = Words()


def said(number: int, who: int = 7, words: Words = WORDS) -> RealtimeInput:
    """Return an input whose sound depends on `number`."""
    lease = words.lease({who}, since=None)
    return RealtimeInput(np.full(100, number, np.int16), (f"who_{number}", f"item_{number}"), 1, lease)


def test_the_same_sound_is_known() -> None:
    """The last sound of a person is known when it comes again, and no other one is."""
    inputs = Inputs()
    assert inputs.find_same(1, said(1).pcm) is None
    inputs.add(1, said(1))
    assert inputs.find_same(1, said(1).pcm) is not None
    assert inputs.find_same(1, said(2).pcm) is None
    assert inputs.find_same(1, said(1).pcm[:50]) is None
    assert inputs.find_same(2, said(1).pcm) is None


def test_what_was_said_before_a_turn_and_became_none_is_told_once() -> None:
    """Inputs before a turn that became no turn themselves are reported once."""
    inputs = Inputs()
    for number in (1, 2, 3):
        inputs.add(7, said(number))
    assert inputs.pop_before(7, ("who_9", "item_9")) is None
    assert [each.item_ids[1] for each in inputs.pop_before(7, said(3).item_ids) or ()] == ["item_1", "item_2"]
    assert inputs.pop_before(7, said(3).item_ids) is None


def test_little_is_kept() -> None:
    """Only the last of a person's inputs keeps its sound. An input that is too old is returned, so that it can be
    deleted.
    """
    inputs = Inputs()
    too_old = [each for number in range(MOST_INPUTS + 2) for each in inputs.add(7, said(number))]
    assert [each.item_ids[1] for each in too_old] == ["item_0", "item_1"]
    assert [inputs.find_same(7, said(MOST_INPUTS + 1 - number).pcm) is None for number in (0, 1)] == [False, True]
