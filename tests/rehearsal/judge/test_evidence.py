"""Words are looked for whole and in order, however they are written."""

from __future__ import annotations

import pytest

from rehearsal.judge.evidence import holds, sounds_like, where
from rehearsal.runner.observation import ContextPart


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
    """Numbers and spellings as Whisper's normaliser sees them."""
    assert holds(text, words) is found


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
    """In spelling, never in a number, and not so far that another answer would pass."""
    assert sounds_like(heard, words) is told


def test_a_part_is_told_with_its_turn() -> None:
    """Where it has one."""
    assert where(ContextPart("user", "turn", "x", 1, 7, 7)) == "the turn part of turn 7"
    assert where(ContextPart("system", "summary", "x", 1)) == "the summary part"
