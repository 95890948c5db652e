"""The ruler that finds where a voice begins and ends."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rehearsal.people.voiced import VoicedBounds, frame_rms, voiced_bounds
from tests.rehearsal.people.sounds import silence, tone

FRAME = 960


@given(lead=st.integers(0, 20), voice=st.integers(2, 40), tail=st.integers(0, 20))
def test_bounds_are_the_frames_of_the_tone(lead: int, voice: int, tail: int) -> None:
    """Silence before and after is found to the frame, whatever its length."""
    pcm = np.concatenate([silence(lead * 0.02), tone(voice * 0.02), silence(tail * 0.02)])
    assert voiced_bounds(pcm, FRAME) == VoicedBounds(lead, lead + voice - 1)


def test_a_pause_inside_does_not_end_the_voice() -> None:
    """The bounds span the pauses of a sentence."""
    pcm = np.concatenate([tone(0.2), silence(0.5), tone(0.2), silence(0.1)])
    assert voiced_bounds(pcm, FRAME) == VoicedBounds(0, 44)


def test_room_noise_after_the_voice_is_not_voice() -> None:
    """Sound that is 40 dB softer than the speech does not count."""
    noise = np.random.default_rng(1).normal(0, 50, 48_000).astype(np.int16)
    pcm = np.concatenate([tone(0.4), silence(0.4)]) + noise[: int(0.8 * 48_000)]
    assert voiced_bounds(pcm.astype(np.int16), FRAME) == VoicedBounds(0, 19)


def test_a_lone_click_is_not_voice() -> None:
    """One loud frame far from any other is the click of a cut."""
    click = silence(1.0)
    click[FRAME * 45 : FRAME * 45 + 100] = 20_000
    pcm = np.concatenate([tone(0.4), click])
    assert voiced_bounds(pcm, FRAME) == VoicedBounds(0, 19)


@pytest.mark.parametrize("seconds", [0.0, 0.01, 2.0])
def test_silence_has_no_bounds(seconds: float) -> None:
    """There is nothing to find in silence, or in nothing."""
    assert voiced_bounds(silence(seconds), FRAME) is None


def test_rms_counts_a_partial_frame_as_padded() -> None:
    """The last, partial frame is measured over a whole frame."""
    rms = frame_rms(np.full(FRAME + FRAME // 4, 1000, np.int16), FRAME)
    assert rms == pytest.approx([1000.0, 500.0])
