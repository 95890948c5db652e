"""Which terms the recogniser is told to expect."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voice.asr.glossary import choose_glossary, glossary_prompt, spoken_form


@pytest.mark.parametrize(
    ("name", "spoken"),
    [
        ("Ada", "Ada"),
        ("  ✨ Ada_Lovelace ✨ ", "Ada Lovelace"),
        ("xX|Sigrún|Xx", "xX Sigrún Xx"),
        ("O'Brien & Söhne", "O'Brien & Söhne"),
        ("two\nlines", "two lines"),
        ("🎮🎮", ""),
    ],
)
def test_spoken_form(name: str, spoken: str) -> None:
    """Decoration goes, letters of every script stay."""
    assert spoken_form(name) == spoken


def test_the_most_important_terms_come_first() -> None:
    """How the bot is called, who is here, what the guild talks about; each once; numbers are no words."""
    terms = choose_glossary(
        wake_names=["Roomtone"], display_names=["Ada", "roomtone", "1234"], words=["Valheim", "ada"], max_chars=300
    )
    assert terms == ("Roomtone", "Ada", "Valheim")


def test_a_term_too_long_leaves_room_for_the_next() -> None:
    """A display name of forty characters and more is not said; a term that does not fit is passed over."""
    terms = choose_glossary(
        wake_names=["Roomtone"], display_names=["x" * 41, "Bartholomew", "Ben"], words=[], max_chars=13
    )
    assert terms == ("Roomtone", "Ben")


@given(st.lists(st.text(max_size=50), max_size=30), st.integers(0, 200))
def test_the_glossary_is_bounded(names: list[str], max_chars: int) -> None:
    """However long the guild's list, the joined terms fit."""
    assert (
        len(", ".join(choose_glossary(wake_names=[], display_names=names, words=[], max_chars=max_chars))) <= max_chars
    )


def test_prompt() -> None:
    """No terms, no prompt."""
    assert glossary_prompt(("Ada", "Valheim")) == "Glossary: Ada, Valheim."
    assert glossary_prompt(()) == ""
