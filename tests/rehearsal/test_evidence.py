"""Words are looked for whole and in order, however they are written."""

from __future__ import annotations

import pytest

from rehearsal.evidence import holds, where
from rehearsal.observation import ContextPart


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


def test_a_part_is_told_with_its_turn() -> None:
    """Where it has one."""
    assert where(ContextPart("user", "turn", "x", 1, 7, 7)) == "the turn part of turn 7"
    assert where(ContextPart("system", "summary", "x", 1)) == "the summary part"
