"""Word errors are counted over normalised words."""

from __future__ import annotations

import pytest

from rehearsal.judge.wer import WordErrors, normalised, total, word_errors


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
    """Punctuation, spelling and the writing of numbers are no errors; words are."""
    assert word_errors(said, heard) == WordErrors(errors, words)


def test_rate_of_nothing_said() -> None:
    """Silence heard as silence is perfect; a phantom is entirely wrong."""
    assert WordErrors(0, 0).rate == 0.0
    assert WordErrors(2, 0).rate == 1.0
    assert WordErrors(1, 4).rate == 0.25


def test_total_sums_errors_and_words_apart() -> None:
    """A long speaker weighs more than a short one."""
    assert total([WordErrors(1, 1), WordErrors(0, 99)]).rate == pytest.approx(0.01)


def test_normalised_keeps_words_apart() -> None:
    """Needed for looking words up whole."""
    assert normalised("Ithaca, I think.") == "ithaca i think"
