"""The language that somebody's words will have shown, before they are certain."""

from __future__ import annotations

import pytest

from voice.asr.languages import SpeakerLanguages


@pytest.mark.parametrize(
    ("language", "probability", "speech_s", "after"),
    [("de", 0.95, 2.0, "de"), ("de", 0.7, 2.0, None), ("de", 0.95, 1.0, None), ("en", 0.95, 2.0, "en")],
)
def test_it_is_the_one_that_is_known_afterwards(
    language: str, probability: float, speech_s: float, after: str | None
) -> None:
    """Nothing is remembered before, and a known language stays."""
    languages = SpeakerLanguages(lambda: ("en", "de"))
    assert languages.after(1, language, probability=probability, speech_s=speech_s) == after
    assert languages.of(1) is None
    languages.observed(1, language, probability=probability, speech_s=speech_s, detected=True)
    assert languages.of(1) == after
    assert languages.after(1, "fr", probability=0.99, speech_s=3.0) == after
