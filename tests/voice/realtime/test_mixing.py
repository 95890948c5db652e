"""Mixing several people's audio into one stream."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from voice.realtime.mixing import LONGEST_PAUSE_S, mix_speakers

if TYPE_CHECKING:
    from voice.audio import Pcm

RATE = 100


def _sound(seconds: float, value: int) -> Pcm:
    return np.full(round(seconds * RATE), value, np.int16)


def test_those_who_speak_at_once_are_heard_at_once() -> None:
    """Where the speech of two people overlaps, their samples are added."""
    room = mix_speakers([(11.0, _sound(2, 30)), (10.0, _sound(2, 5))], RATE)
    assert [int(room[at]) for at in (0, 150, 250)] == [5, 35, 30]
    assert len(room) == 3 * RATE


def test_a_pause_is_no_longer_than_it_needs_to_be() -> None:
    """Long silence is shortened to a maximum, because silence costs money too."""
    room = mix_speakers([(0.0, _sound(1, 5)), (11.0, _sound(1, 6))], RATE)
    assert len(room) == pytest.approx((2 + LONGEST_PAUSE_S) * RATE)


def test_too_loud_is_clipped() -> None:
    """Two loud voices are clipped and do not wrap around to noise."""
    assert mix_speakers([(0.0, _sound(1, 30_000)), (0.0, _sound(1, 30_000))], RATE).max() == 32_767


def test_nobody_is_silence() -> None:
    """Without speakers the result is empty."""
    assert len(mix_speakers([], RATE)) == 0
