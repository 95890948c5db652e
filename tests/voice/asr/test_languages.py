"""The language of what somebody says: that of their words where it is sure."""

from __future__ import annotations

import pytest

from voice.asr.languages import SpeakerLanguages


@pytest.mark.parametrize(
    ("language", "probability", "speech_s", "before", "after"),
    [
        # Somebody who asks something in another language is answered in it, before that is theirs.
        ("de", 0.95, 2.0, "de", "de"),
        ("en", 0.95, 2.0, "en", "en"),
        # A guess is no other language, and of what is not spoken here nobody has said anything.
        ("de", 0.7, 2.0, None, "en"),
        ("de", 0.95, 1.0, None, "en"),
        ("fr", 0.95, 2.0, None, "en"),
        ("", 1.0, 2.0, None, "en"),
    ],
)
def test_the_language_of_words(
    language: str, probability: float, speech_s: float, before: str | None, after: str | None
) -> None:
    """`before` anything is known of the person, and `after` English is theirs. Nothing is remembered."""
    languages = SpeakerLanguages(lambda: ("en", "de"))
    assert languages.of_words(1, language, probability=probability, speech_s=speech_s) == before
    assert languages.of(1) is None
    languages.observed(1, "en", probability=0.99, speech_s=3.0, detected=True)
    assert languages.of_words(1, language, probability=probability, speech_s=speech_s) == after
