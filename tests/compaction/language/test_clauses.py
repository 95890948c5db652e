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


@pytest.mark.parametrize(
    "said",
    [
        "I come on Friday because my sister Anna and her two children are there, unless the strike goes on for longer.",
        "Ich komme am Freitag, weil meine Schwester Anna mit den beiden Kindern auch dort ist, außer sie streiken.",
    ],
)
def test_a_condition_after_a_reason_is_one_of_the_main_clause(said: str) -> None:
    """It limits what stands before the reason, which is left out with it if both are too long."""
    assert not any("Friday" in each or "Freitag" in each for each in statements(said, 100))


def test_figures_are_not_cut() -> None:
    """A comma or colon inside of a number or a clock time ends no clause."""
    said = (
        "The new tent costs 1,200 euros in the big shop near the station, and we meet there at 7:30 on Friday morning "
        "with Anna, her two children and the dog."
    )
    told = " ".join(statements(said, 120))
    assert "costs 1,200 euros" in told
    assert "at 7:30 on Friday" in told


def test_a_statement_has_room_for_its_full_stop() -> None:
    """A sentence that only fits without one would lose its last clause when it is closed."""
    said = f"We cancel the {'long ' * 15}tour to the lake, unless the strike is over"
    assert all(len(each) < len(said) for each in statements(said, len(said)))
    assert statements(said, len(said) + 1) == [said]
