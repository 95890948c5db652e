"""What somebody said is cut into statements, and loses nothing but its preamble."""

from __future__ import annotations

import pytest

from compaction.language.clauses import statements


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("Right, um, we leave at nine.", "We leave at nine."),
        ("Er, we leave at nine.", "We leave at nine."),
        ("Er wohnt in Graz.", "Er wohnt in Graz."),
        ("Er heißt Bruno.", "Er heißt Bruno."),
        ("Um acht treffen wir uns.", "Um acht treffen wir uns."),
        ("Ähm, also, wir fahren um neun.", "Wir fahren um neun."),
    ],
)
def test_only_a_preamble_is_left_out(said: str, kept: str) -> None:
    """Fillers go, and a word that is one in another language stays: 'er' is German for 'he'."""
    assert statements(said, 240) == [kept]
