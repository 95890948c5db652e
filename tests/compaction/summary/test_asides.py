"""What stands in brackets is left out where a text is a little too long."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction.summary.asides import without_asides

TEXT = "Tuva is ill (a cold). Jonas brings his car (red, old), Sami wood."


@pytest.mark.parametrize(
    ("text", "most", "kept"),
    [
        (TEXT, 100, TEXT),
        (TEXT, len(TEXT), TEXT),
        (TEXT, len(TEXT) - 1, "Tuva is ill. Jonas brings his car (red, old), Sami wood."),
        (TEXT, len(TEXT) - 9, "Tuva is ill. Jonas brings his car (red, old), Sami wood."),
        (TEXT, len(TEXT) - 10, "Tuva is ill (a cold). Jonas brings his car, Sami wood."),
        (TEXT, len(TEXT) - 20, "Tuva is ill. Jonas brings his car, Sami wood."),
        (TEXT, len(TEXT) - 21, None),
        ("No brackets here.", 10, None),
        ("Half (a bracket", 10, None),
        ("Ada (who (so they say) sings) left.", 30, "Ada (who sings) left."),
        ("アダは来る（たぶん）。", 8, "アダは来る。"),
    ],
)
def test_the_shortest_that_is_enough_goes(text: str, most: int, kept: str | None) -> None:
    """One aside where one is enough, else the longest ones; None where all together are not enough."""
    assert without_asides(text, most) == kept


@given(st.text(alphabet="ab ().;（）"), st.integers(0, 40))
def test_what_is_left_fits_and_was_there(text: str, most: int) -> None:
    """It is at most so long, and all of it is the text's in the same order."""
    kept = without_asides(text, most)
    if kept is None:
        assert len(text) > most
        return
    assert len(kept) <= most
    rest = iter(text)
    assert all(each in rest for each in kept)
