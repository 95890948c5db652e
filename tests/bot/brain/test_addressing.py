"""Which texts call somebody else by their name."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.brain.wakeword import SpokenWords, call_names, calls_any

PEOPLE = ("Ben Okafor", "Chloe", "Will", "Okay", "☃", "May", "मीरा शर्मा", "小明")
NAMES = frozenset().union(*map(call_names, PEOPLE))


@pytest.mark.parametrize(
    ("text", "calls"),
    [
        ("Ben, are you coming?", True),
        ("Hey Ben, look.", True),
        ("What do you think, Chloe?", True),
        ("Chloe!", True),
        ("Are you there, Ben Okafor?", True),
        ("Thanks, Ben, that was kind.", True),
        ("Will, are you coming?", True),
        ("मीरा, समय क्या है?", True),
        ("小明，你来吗？", True),
        ("मेरा, समय क्या है?", False),
        ("Ben said that it rains.", False),
        ("What did Ben Okafor bring?", False),
        ("Benn, hello.", False),
        ("Is it Ben or Chloe who goes?", False),
        ("Ada, are you coming?", False),
        ("Will you tell me more?", False),
        ("May I ask what time it is?", False),
        ("Okay, what next?", False),
        ("And Ben?", False),
        ("What about Ben?", False),
        ("", False),
    ],
)
def test_a_name_as_it_is_spelled_and_set_off_is_a_call(text: str, calls: bool) -> None:
    """Talk about somebody is none, nor is an ordinary word that is also a name."""
    assert calls_any(SpokenWords(text), NAMES) is calls


@given(st.text(), st.lists(st.text(max_size=12), max_size=4))
def test_any_text_and_any_names_can_be_looked_at(text: str, names: list[str]) -> None:
    """A text without words calls nobody."""
    words = SpokenWords(text)
    assert not calls_any(words, frozenset().union(*map(call_names, names))) or len(words) > 0


@pytest.mark.parametrize(
    ("text", "count"),
    [("what is it?", 3), ("", 0), ("今天天气怎么样？", 4), ("何？", 1), ("今日 is ルームトーン", 5), ("สวัสดี", 3)],
)
def test_words_are_counted_in_writing_without_spaces_too(text: str, count: int) -> None:
    """In scripts without spaces, two characters count as one word."""
    assert SpokenWords(text).spoken_count == count
