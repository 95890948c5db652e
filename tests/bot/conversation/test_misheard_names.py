"""Misheard names of the people present are put right, and nothing else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.conversation.misheard_names import correct_names

PRESENT = ("Ksenia", "Joris", "Jess", "Peter B.", "Anneliese")


@pytest.mark.parametrize(
    ("heard", "meant"),
    [
        ("I think Senya has it.", "I think Ksenia has it."),
        ("It's Xenia's folder, not Yoris's.", "It's Ksenia's folder, not Joris's."),
        ("Senya, where is it?", "Ksenia, where is it?"),
        ("Then Annalise said no.", "Then Anneliese said no."),
        # A common word, the beginning of a sentence, and a word in small letters.
        ("Yes, they said Yes.", "Yes, they said Yes."),
        ("Senya has it.", "Senya has it."),
        ("We took the senya road.", "We took the senya road."),
        # Somebody else, who only looks alike.
        ("My aunt Kenya and Doris came.", "My aunt Kenya and Doris came."),
        # German nouns have capitals.
        ("Der Pater hat das nicht gesagt.", "Der Pater hat das nicht gesagt."),
        ("PETRA and I talked.", "PETRA and I talked."),
    ],
)
def test_a_word_becomes_a_name_only_where_it_can_be_nothing_else(heard: str, meant: str) -> None:
    """It sounds like one person's name, stands as names stand, and is no common word."""
    assert correct_names(heard, PRESENT, unsure=True) == meant


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("Half the people call you Senya.", "Half the people call you Senya."),
        ("He's called Yoris, with a Y. Anneliese knows him.", "He's called Yoris, with a Y. Anneliese knows him."),
        ("Senya, is it Senya or Xenia?", "Ksenia, is it Senya or Xenia?"),
    ],
)
def test_what_was_heard_well_is_changed_only_where_somebody_is_called(said: str, meant: str) -> None:
    """What people say about a name stays as they said it."""
    assert correct_names(said, PRESENT, unsure=False) == meant


def test_two_people_alike_are_told_apart_by_nobody() -> None:
    """A word that may be either of them stays as it was heard."""
    assert correct_names("I asked Sigrune.", ("Sigrun", "Sigrunn"), unsure=True) == "I asked Sigrune."


@given(st.text(), st.lists(st.text(max_size=12), max_size=4))
def test_who_is_named_right_stays_so(text: str, names: list[str]) -> None:
    """A text that was put right stays as it is, and without names nothing changes."""
    once = correct_names(text, names, unsure=True)
    assert correct_names(once, names, unsure=True) == once
    assert correct_names(text, (), unsure=True) == text
