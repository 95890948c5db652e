"""The sentences that the bot's voices say, and how what is heard of them is counted."""

from __future__ import annotations

import pytest

from benchmarks.asr.voices import SpokenSentence, fewest_errors, spoken_sentences


def test_both_halves_are_large_enough_and_have_the_bots_name() -> None:
    """No sentence is in both, so that a rule chosen by one half is measured by what did not choose it."""
    halves = spoken_sentences()
    written = [each.written for half in halves.values() for each in half]
    assert len(set(written)) == len(written) == 60
    for half in halves.values():
        assert len(half) == 30
        assert any("Roomtone" in each.written for each in half)
        assert all(each.said for each in half)


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
