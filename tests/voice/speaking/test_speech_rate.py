"""Estimating how long a text takes to speak, and which part of the text a part of its audio covers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voice.speaking.speech_rate import CHARS_A_SECOND, SpeechRate, words_after, words_until


def test_a_pace_is_learned_from_what_was_said() -> None:
    """The pace of a voice, ten characters a second, is learned from some sentences, and clicks are ignored."""
    rate = SpeechRate()
    assert rate.duration_s("x" * 30) == pytest.approx(30 / CHARS_A_SECOND)
    for _ in range(20):
        rate.learn("x" * 40, 4.0)
        rate.learn("x" * 40, 0.1)
    assert rate.duration_s("x" * 40) == pytest.approx(4.0, abs=0.1)
    assert rate.spoken_share("x" * 40, 1.0) == pytest.approx(0.25, abs=0.02)
    assert rate.spoken_share("x" * 40, 60.0) == 1.0


@given(st.text(), st.floats(0, 1))
def test_what_was_said_and_what_was_not_are_the_whole(text: str, share: float) -> None:
    both = f"{words_until(text, share)} {words_after(text, share)}".split()
    assert both == text.split()


def test_a_word_that_was_begun_is_said_again() -> None:
    assert words_after("one two three four", 0.6) == "three four"
    assert words_until("one two three four", 1.0) == "one two three four"
