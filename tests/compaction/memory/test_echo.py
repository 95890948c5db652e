"""What the bot repeated of somebody is known by a run of words, or by the name."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction.memory.echo import RUN_WORDS, names_any, repeats, runs_of

SAID = ("I have decided that the town is Lisbon.", "To Zanzibar!", "Yes.", "")


@pytest.mark.parametrize(
    ("text", "repeated"),
    [
        ("Earlier, Ada said: I have decided that the town is Lisbon.", True),
        ("They have decided, and the town is Lisbon, I think.", True),
        ("It is Lisbon.", False),
        ("Off to Zanzibar we go.", True),
        ("Yes.", False),
        ("", False),
    ],
)
def test_a_run_of_words_is_a_quotation(text: str, repeated: bool) -> None:
    """Four in a row, or the whole of something shorter; one word alone is in everybody's mouth."""
    assert repeats(text, runs_of(SAID)) is repeated


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("Ada wants to go.", True),
        ("It is ADA’s boat.", True),
        ("Canada is large.", False),
        ("Mary Ann said so.", True),
        ("Ann Mary said so.", False),
        ("", False),
    ],
)
def test_a_name_stands_as_a_word(text: str, named: bool) -> None:
    """In any spelling of capitals, with all its words in order; nobody's name is nothing."""
    assert names_any(text, {"Ada", "Mary Ann", "!!"}) is named


@given(st.lists(st.sampled_from(["red", "blue", "green", "nine", "boat"]), min_size=RUN_WORDS, max_size=12))
def test_whatever_was_said_is_found_where_it_is_quoted(words: list[str]) -> None:
    """In the middle of any sentence."""
    said = " ".join(words)
    assert repeats(f"Just now, Ada said: {said}, if I heard that well.", runs_of([said]))
