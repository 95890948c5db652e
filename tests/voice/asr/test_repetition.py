"""Repetition loops in a capped answer are reduced to one occurrence."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voice.asr.repetition import compression_ratio, remove_repetition


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("Lobsters and lobsters Lobsters and lobsters Lobsters and lob", "Lobsters and lobsters"),
        ("We leave at nine. We leave at nine. We leave at nine.", "We leave at nine."),
        ("no no no no no", "no"),
        ("so then a b a b a b a", "so then a b"),
        (
            "one two three four five six seven eight nine ten " * 2 + "one tw",
            "one two three four five six seven eight nine ten",
        ),
        (
            "it is now given to one in cases of a b c it is now given to one in cases o",
            "it is now given to one in cases of a b c",
        ),
        ("I said no, no", "I said no, no"),
        ("we leave at nine", "we leave at nine"),
        ("and the and", "and the and"),
        ("word", "word"),
        ("", ""),
    ],
)
def test_loops(text: str, kept: str) -> None:
    """One occurrence of the phrase stays; repetitions and an incomplete last one go; other text is unchanged."""
    assert remove_repetition(text) == kept


@given(st.lists(st.sampled_from(["yes", "no", "nine", "we"]), max_size=40).map(" ".join))
def test_what_is_kept_is_the_beginning(text: str) -> None:
    """Nothing is ever reordered or invented, and something remains of something."""
    kept = remove_repetition(text)
    assert text.startswith(kept)
    assert bool(kept) == bool(text)


def test_compression_ratio() -> None:
    """Repetition compresses."""
    assert compression_ratio("We leave at nine.") < 1.5
    assert compression_ratio("we leave " * 20) > 2.4
