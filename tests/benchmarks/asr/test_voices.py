"""The sentences that the bot's voices say, and how what is heard of them is counted."""

from __future__ import annotations

import pytest

from benchmarks.asr.voices import SpokenSentence, fewest_errors


@pytest.mark.parametrize(
    ("heard", "errors"),
    [
        ("It costs 3 dollars 50.", 0),
        ("It costs 3 dollars and 50 cents.", 0),
        ("It costs 30 dollars 50.", 1),
        ("", 3),
    ],
)
def test_the_nearest_wording_counts(heard: str, errors: int) -> None:
    sentence = SpokenSentence("It costs $3.50.", ("It costs 3 dollars 50.", "It costs 3 dollars and 50 cents."))
    assert fewest_errors(sentence, heard).errors == errors
