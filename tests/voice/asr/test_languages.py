"""A person's language is detected, then settled, and confirmed rarely."""

from __future__ import annotations

from voice.asr.languages import CONFIRM_EVERY, DOUBTFUL_LOGPROB, SpeakerLanguages

ADA, BEN = 1, 2


def _detected(languages: SpeakerLanguages, user_id: int, language: str, *, sure: bool) -> None:
    languages.observed(user_id, language, probability=0.95 if sure else 0.5, speech_s=3.0, detected=True)


def _expected_as(languages: SpeakerLanguages, user_id: int, language: str) -> None:
    languages.observed(user_id, language, probability=1.0, speech_s=3.0, detected=False)


def _expected(languages: SpeakerLanguages, user_id: int, *, speech_s: float = 3.0) -> str | None:
    return languages.expected(user_id, speech_s=speech_s)


def _guessed(languages: SpeakerLanguages, user_id: int, fallback: str) -> None:
    languages.observed(user_id, fallback, probability=0.1, speech_s=3.0, detected=True)


def test_a_fixed_language_is_everybodys() -> None:
    """The language of the settings overrides every detection."""
    languages = SpeakerLanguages("de")
    _detected(languages, ADA, "en", sure=True)
    assert _expected(languages, ADA) == "de"


def test_one_sure_detection_settles() -> None:
    """One sure detection settles the language of that person and of nobody else."""
    languages = SpeakerLanguages()
    assert _expected(languages, ADA) is None
    _detected(languages, ADA, "en", sure=True)
    assert _expected(languages, ADA) == "en"
    assert _expected(languages, BEN) is None


def test_unsure_detections_must_agree() -> None:
    """One unsure detection settles nothing; the same language twice in a row does."""
    languages = SpeakerLanguages()
    _detected(languages, ADA, "cy", sure=False)
    assert _expected(languages, ADA) is None
    _detected(languages, ADA, "en", sure=False)
    assert _expected(languages, ADA) is None
    _detected(languages, ADA, "en", sure=False)
    assert _expected(languages, ADA) == "en"


def test_a_sure_detection_of_a_short_word_settles_nothing() -> None:
    """A sure detection on a short word settles nothing, because 'Ja' is said in many languages."""
    languages = SpeakerLanguages()
    languages.observed(ADA, "de", probability=0.99, speech_s=0.4, detected=True)
    assert _expected(languages, ADA) is None


def test_a_fallback_settles_nothing() -> None:
    """The fallback language is not settled, however often it is used. For 'Ja.' and 'Genau.' no language was likely."""
    languages = SpeakerLanguages()
    _guessed(languages, ADA, "en")
    _guessed(languages, ADA, "en")
    assert _expected(languages, ADA) is None
    _detected(languages, ADA, "de", sure=True)
    assert _expected(languages, ADA) == "de"


def test_a_settled_language_is_confirmed_rarely() -> None:
    """After twenty utterances the language is detected again, and the same result settles it for another twenty."""
    languages = SpeakerLanguages()
    _detected(languages, ADA, "en", sure=True)
    for _ in range(CONFIRM_EVERY):
        assert _expected(languages, ADA) == "en"
        _expected_as(languages, ADA, "en")
    assert _expected(languages, ADA) is None
    _detected(languages, ADA, "en", sure=False)
    assert _expected(languages, ADA) == "en"


def test_a_change_of_language_takes_two_contradictions() -> None:
    """The first contradicting detection causes another detection, and the second one changes the language."""
    languages = SpeakerLanguages()
    _detected(languages, ADA, "en", sure=True)
    for _ in range(CONFIRM_EVERY):
        _expected_as(languages, ADA, "en")
    _detected(languages, ADA, "fr", sure=True)
    assert _expected(languages, ADA) is None
    _detected(languages, ADA, "fr", sure=True)
    assert _expected(languages, ADA) == "fr"


def test_who_left_is_forgotten() -> None:
    """A person's language is forgotten when they leave, so a room does not remember thousands of visitors."""
    languages = SpeakerLanguages()
    _detected(languages, ADA, "en", sure=True)
    languages.forget(ADA)
    languages.forget(ADA)
    assert _expected(languages, ADA) is None


def test_a_change_of_language_is_followed_at_once() -> None:
    """Somebody who goes on in another language is heard in it after three utterances: an unlikely text calls for a
    confirmation, and two that agree settle it. The other people keep their language.
    """
    languages = SpeakerLanguages()
    for person in (ADA, BEN):
        _detected(languages, person, "en", sure=True)
    languages.observed(ADA, "en", probability=1.0, speech_s=3.0, detected=False, mean_logprob=DOUBTFUL_LOGPROB - 0.1)
    for _ in range(2):
        assert _expected(languages, ADA) is None
        _detected(languages, ADA, "de", sure=True)
    assert _expected(languages, ADA) == languages.of(ADA) == "de"
    assert _expected(languages, BEN) == languages.of(BEN) == "en"
