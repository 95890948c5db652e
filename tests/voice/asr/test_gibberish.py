"""Texts that no language has are told from what people say, in several languages."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voice.asr.gibberish import is_gibberish

CASES = tomllib.loads((Path(__file__).parent / "gibberish_cases.toml").read_text("utf-8"))


@pytest.mark.parametrize("text", CASES["tuning"]["real"] + CASES["apart"]["real"])
def test_what_people_say_is_no_gibberish(text: str) -> None:
    """Names, laughter, drawn-out words, numbers and words full of consonants pass in every language of the table."""
    assert not is_gibberish(text)


@pytest.mark.parametrize("text", CASES["tuning"]["gibberish"] + CASES["apart"]["gibberish"])
def test_what_no_language_has_is_gibberish(text: str) -> None:
    """Runs of one letter or syllable, mixed alphabets, broken signs and mere symbols are found."""
    assert is_gibberish(text)


@given(st.text(max_size=40))
def test_any_text_gets_an_answer(text: str) -> None:
    """No text raises an error, and a text with a run of one letter is gibberish whatever stands around it."""
    is_gibberish(text)
    assert is_gibberish(f"{text} nnnnnnnnn")


def test_a_hostile_text_is_judged_in_linear_work() -> None:
    """A text of 10,000 letters that almost repeats is answered: the search does not go back for every length."""
    assert not is_gibberish("abcde" * 2_000 + "x")
