"""Which texts describe a sound."""

from __future__ import annotations

import pytest

from voice.asr.sound_effect import is_sound_effect


@pytest.mark.parametrize("text", ["[laughter]", "(coughs)", "*sighs*", "♪ humming ♪", " [door closes]. "])
def test_a_described_sound_is_an_effect(text: str) -> None:
    """A text that is only a description in brackets, asterisks or note signs is a sound effect."""
    assert is_sound_effect(text)


@pytest.mark.parametrize("text", ["Ha ha ha!", "I said (twice) no.", "[laughter] Oh dear.", "", "[]", "(a) and (b)"])
def test_words_are_no_effect(text: str) -> None:
    """A text with spoken words is no sound effect, even if it has brackets."""
    assert not is_sound_effect(text)
