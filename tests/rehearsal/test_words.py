"""Words are normalised before they are compared: word errors, searches in a text, and spellings of a recogniser."""

from __future__ import annotations

import pytest

from rehearsal.words import WordErrors, contains_words, sounds_like, sum_word_errors, word_errors


@pytest.mark.parametrize(
    ("said", "heard", "errors", "words"),
    [
        ("Hello there, Ada!", "hello there ada", 0, 3),
        ("twenty five candles", "25 candles", 0, 2),
        ("my favourite colour", "my favorite color", 0, 3),
        ("we saw it", "we sore it", 1, 3),
        ("we saw it", "", 3, 3),
        ("we", "we saw it", 2, 1),
        ("um", "hello", 1, 0),
        ("", "", 0, 0),
    ],
)
def test_errors(said: str, heard: str, errors: int, words: int) -> None:
    """Punctuation, spelling and the notation of numbers do not count as errors. Different words do."""
    assert word_errors(said, heard) == WordErrors(errors, words)


def test_rate_of_nothing_said() -> None:
    """If nothing was said, the error rate is 0 when nothing was heard and 1 when something was heard."""
    assert WordErrors(0, 0).rate == 0.0
    assert WordErrors(2, 0).rate == 1.0
    assert WordErrors(1, 4).rate == 0.25


def test_total_sums_errors_and_words_apart() -> None:
    """The total divides all errors by all words, so long texts weigh more than short ones."""
    assert sum_word_errors([WordErrors(1, 1), WordErrors(0, 99)]).rate == pytest.approx(0.01)


@pytest.mark.parametrize(
    ("text", "words", "found"),
    [
        ("It was Ithaca.", "ithaca", True),
        ("It was Ithaca.", "it was", True),
        ("It was Ithaca.", "was it", False),
        ("Ithacan boats", "Ithaca", False),
        ("It starts at seven.", "7", True),
        ("The colour is red.", "color", True),
        ("", "Ithaca", False),
    ],
)
def test_words_in_a_text(text: str, words: str, found: bool) -> None:
    """Words are found whole, with numbers and spellings as Whisper's normaliser writes them."""
    assert contains_words(text, words) is found


@pytest.mark.parametrize(
    ("heard", "words", "told"),
    [
        ("we are meeting at half-pass six", "half past six", True),
        ("I will take the number 9 busted the harbor", "number nine bus", True),
        ("We meet at half past seven.", "half past six", False),
        ("We meet at a quarter past six.", "half past six", False),
        ("I will take the number 8 bus.", "number nine bus", False),
        ("It was Lisborn.", "Lisbon", True),
        ("It was London.", "Lisbon", False),
        ("It was men.", "Ben", False),
        ("The green folding cheers.", "green folding chairs", True),
        ("We are meeting at the old harbor at half-passix, no language", "half past six", True),
        ("We are meeting at half-past-nine, no language", "half past six", False),
        ("at half past eight", "half past six", False),
        ("I will take the number five bus.", "number nine bus", False),
        ("The early trained soup", "early train", True),
        ("past half six", "half past six", False),
        ("half past", "half past six", False),
        ("", "Lisbon", False),
    ],
)
def test_what_a_recogniser_writes_may_differ_a_little(heard: str, words: str, told: bool) -> None:
    """`sounds_like` accepts small differences in spelling, but no other number and no other answer."""
    assert sounds_like(heard, words) is told
