"""`voiced_bounds` finds the first and the last frame of a voice by its energy."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rehearsal.people.clip import VoicedBounds, voiced_bounds
from tests.rehearsal.people.sounds import silence, tone

FRAME = 960


@given(lead=st.integers(0, 20), voice=st.integers(2, 40), tail=st.integers(0, 20))
def test_bounds_are_the_frames_of_the_tone(lead: int, voice: int, tail: int) -> None:
    """The bounds are exact to the frame, however long the silence before and after is."""
    pcm = np.concatenate([silence(lead * 0.02), tone(voice * 0.02), silence(tail * 0.02)])
    assert voiced_bounds(pcm, FRAME) == VoicedBounds(lead, lead + voice - 1)


def test_room_noise_after_the_voice_is_not_voice() -> None:
    """Sound that is 40 dB softer than the speech does not count as voice."""
    noise = np.random.default_rng(1).normal(0, 50, 48_000).astype(np.int16)
    pcm = np.concatenate([tone(0.4), silence(0.4)]) + noise[: int(0.8 * 48_000)]
    assert voiced_bounds(pcm.astype(np.int16), FRAME) == VoicedBounds(0, 19)
