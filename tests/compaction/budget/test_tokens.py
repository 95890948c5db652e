"""The estimate is never too low for what tokenisers do worst with, and not absurdly high for talk."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction.budget.tokens import MESSAGE_OVERHEAD_TOKENS, estimate_text_tokens, estimate_tokens


@dataclass(frozen=True)
class Said:
    role: str
    content: str


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", 0),
        ("word", 2),
        ("I am a", 3),
        ("We decided to rent the cabin in Braemar.", 12),
        # Figures, punctuation and ids: one a character.
        ("4411", 4),
        ("a1b2-c3", 7),
        ('{"a": 1}', 7),
        # Everything else by its bytes.
        ("é", 2),
        ("日本", 6),
        ("🦄", 4),
        # The space before a word is part of it; others are not.
        ("a b", 2),
        ("a\n\n  b", 6),
    ],
)
def test_estimates(text: str, tokens: int) -> None:
    """Letters a third, runs of them at least one, the rest one each or by its bytes."""
    assert estimate_text_tokens(text) == tokens


def test_spoken_english_is_over_a_quarter_of_its_characters() -> None:
    """`chars / 4` under-counts talk by up to 25 %; this stays above that."""
    text = "I keep dying on that jump, so let's take the left door and meet Bob at the station at 9:30 on Friday."
    assert len(text) / 4 * 1.25 <= estimate_text_tokens(text) <= len(text) / 2


@given(st.text(), st.text())
def test_more_text_never_costs_less(one: str, other: str) -> None:
    """Adding text adds tokens, and nothing costs more than its bytes."""
    assert estimate_text_tokens(one) <= estimate_text_tokens(f"{one} {other}")
    assert estimate_text_tokens(one) <= len(one.encode("utf-8", "surrogatepass"))


def test_each_message_has_its_overhead() -> None:
    """Two messages cost their texts and two frames."""
    said = [Said("user", "word"), Said("assistant", "word")]
    assert estimate_tokens(said) == 2 * (2 + MESSAGE_OVERHEAD_TOKENS)
    assert estimate_tokens([], "any-model") == 0
