"""A person's language is detected, then settled, and confirmed rarely."""

from __future__ import annotations

import pytest

from voice.asr.languages import CONFIRM_EVERY, DOUBTFUL_LOGPROB, SpeakerLanguages

ADA, BEN = 1, 2
# What an utterance may tell of its language, by a word: the probability, its seconds, whether it was detected, and the
# mean log probability of its text.
TOLD = {
    "sure": (0.95, 3.0, True, -0.2),
    "unsure": (0.5, 3.0, True, -0.2),
    # A sure detection on a word that is said in many languages.
    "short": (0.99, 0.4, True, -0.2),
    # No language was likely, and the fallback was taken.
    "guess": (0.1, 3.0, True, -0.2),
    "expected": (1.0, 3.0, False, -0.2),
    "unlikely": (1.0, 3.0, False, DOUBTFUL_LOGPROB - 0.1),
}
ENOUGH = "expected en, " * CONFIRM_EVERY


def tell(languages: SpeakerLanguages, user_id: int, history: str) -> None:
    """Let somebody say what is listed, such as 'sure en, expected en'."""
    for word, language in (said.split() for said in history.split(", ") if said):
        probability, speech_s, detected, logprob = TOLD[word]
        languages.observed(
            user_id, language, probability=probability, speech_s=speech_s, detected=detected, mean_logprob=logprob
        )


@pytest.mark.parametrize(
    ("history", "expected"),
    [
        ("", None),
        ("sure en", "en"),
        # One unsure detection settles nothing; the same language twice in a row does.
        ("unsure cy", None),
        ("unsure cy, unsure en", None),
        ("unsure cy, unsure en, unsure en", "en"),
        ("short de", None),
        ("guess en, guess en", None),
        ("guess en, guess en, sure de", "de"),
        # After twenty utterances it is detected again, and the same result settles it for another twenty.
        ("sure en, " + ENOUGH.removesuffix("expected en, "), "en"),
        ("sure en, " + ENOUGH, None),
        ("sure en, " + ENOUGH + "unsure en", "en"),
        # The first contradiction causes another detection, and the second one changes the language.
        ("sure en, " + ENOUGH + "sure fr", None),
        ("sure en, " + ENOUGH + "sure fr, sure fr", "fr"),
        # An unlikely text calls for a confirmation, so that who goes on in another language is followed at once.
        ("sure en, unlikely en", None),
        ("sure en, unlikely en, sure de", None),
        ("sure en, unlikely en, sure de, sure de", "de"),
    ],
)
def test_what_is_expected_next(history: str, expected: str | None) -> None:
    """Of this person. The others keep their language."""
    languages = SpeakerLanguages()
    tell(languages, BEN, "sure it")
    tell(languages, ADA, history)
    assert languages.expected(ADA, speech_s=3.0) == expected
    assert languages.expected(BEN, speech_s=3.0) == languages.of(BEN) == "it"
    assert expected is None or languages.of(ADA) == expected


def test_a_fixed_language_is_everybodys() -> None:
    """The language of the settings overrides every detection."""
    languages = SpeakerLanguages(lambda: ("de",))
    tell(languages, ADA, "sure en")
    assert languages.expected(ADA, speech_s=3.0) == "de"


def test_a_settled_language_that_is_no_longer_spoken_is_detected_anew() -> None:
    """A server may narrow its languages while people talk, and may take that back."""
    among: list[str] = []
    languages = SpeakerLanguages(lambda: tuple(among))
    tell(languages, ADA, "sure fr")
    among += ["en", "de"]
    assert languages.expected(ADA, speech_s=3.0) is None
    among.clear()
    assert languages.expected(ADA, speech_s=3.0) == "fr"


def test_who_left_is_forgotten() -> None:
    """A person's language is forgotten when they leave, so a room does not remember thousands of visitors."""
    languages = SpeakerLanguages()
    tell(languages, ADA, "sure en")
    languages.forget(ADA)
    languages.forget(ADA)
    assert languages.expected(ADA, speech_s=3.0) is None
