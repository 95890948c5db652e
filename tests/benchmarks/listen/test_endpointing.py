"""What the room's policy does to observed pauses."""

from __future__ import annotations

import pytest

from benchmarks.listen.endpointing import outcome, windows_needed
from benchmarks.listen.observed_pauses import ObservedPause
from voice.listening.end_policy import END_POLICY
from voice.listening.endpointing import ENDPOINTING, WINDOW_S, window_count

SURE, UNSURE = 0.999, 0.001


def test_a_pause_is_cut_that_is_as_long_as_the_silence_needed() -> None:
    """One window less is kept; an end is known after the silence and what the voice left of it."""
    needed = windows_needed(ObservedPause(None, SURE, None))
    pauses = [
        ObservedPause(needed, SURE, None),
        ObservedPause(needed - 1, SURE, None),
        ObservedPause(None, SURE, None, voice_end_s=0.1),
    ]
    done = outcome(pauses)
    assert (done.inside, done.cut) == (2, 1)
    assert list(done.known_after_s) == pytest.approx([0.1 + needed * WINDOW_S], abs=0.02)
    assert outcome([]).as_json()["cut_share"] is None


def test_who_sounds_unfinished_is_waited_for_longer() -> None:
    """Without the end-of-turn model the fixed silence counts."""
    assert windows_needed(ObservedPause(None, UNSURE, None)) > windows_needed(ObservedPause(None, SURE, None))
    assert windows_needed(ObservedPause(None, UNSURE, None)) == window_count(END_POLICY.longest_s)
    assert windows_needed(ObservedPause(None, None, None)) == window_count(ENDPOINTING.end_silence_s)
