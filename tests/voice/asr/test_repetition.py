"""Repetition loops in an answer that reached the token cap are reduced to one occurrence."""

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
    """A repeated phrase is kept once, without an incomplete last repetition. Other text is unchanged."""
    assert remove_repetition(text) == kept


@given(st.lists(st.sampled_from(["yes", "no", "nine", "we"]), max_size=40).map(" ".join))
def test_what_is_kept_is_the_beginning(text: str) -> None:
    """The result is the beginning of the text, and is empty only if the text is empty."""
    kept = remove_repetition(text)
    assert text.startswith(kept)
    assert bool(kept) == bool(text)


def test_compression_ratio() -> None:
    """Repeated text has a higher compression ratio than an ordinary sentence."""
    assert compression_ratio("We leave at nine.") < 1.5
    assert compression_ratio("we leave " * 20) > 2.4
