"""The estimate is never too low for text that tokenises badly, and not far too high for speech."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction.tokens import (
    MESSAGE_OVERHEAD_TOKENS,
    TOOL_CALL_OVERHEAD_TOKENS,
    estimate_text_tokens,
    estimate_tokens,
)


@dataclass(frozen=True)
class Said:
    role: str
    content: str


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", 0),
        ("word", 2),
        ("I am a", 3),
        ("We decided to rent the cabin in Braemar.", 12),
        # Digits, punctuation and ids count one token for each character.
        ("4411", 4),
        ("a1b2-c3", 7),
        ("deadbeef77", 10),
        # Letters that form no words: all capitals, mixed case, only consonants, or too long for a word.
        ("MAX_TURNS", 8),
        ("kJhGfD", 6),
        ("mxyzptlk", 7),
        ("abacadabacadabacad", 15),
        ('{"a": 1}', 8),
        # Other characters count one token for each byte.
        ("é", 2),
        ("日本", 6),
        ("🦄", 4),
        # The space before a word is part of the word. Other white space counts by itself.
        ("a b", 2),
        ("room 20", 5),
        ("| 20 |", 5),
        ("a\n\n  b", 6),
    ],
)
def test_estimates(text: str, tokens: int) -> None:
    """Each letter counts a third of a token and each run of letters at least one. Other characters count one token
    each, or one for each byte.
    """
    assert estimate_text_tokens(text) == tokens


def test_spoken_english_is_over_a_quarter_of_its_characters() -> None:
    """The estimate for spoken English is at least 25 % above `chars / 4`, because that rule under-counts talk by up to
    25 %.
    """
    text = "I keep dying on that jump, so let's take the left door and meet Bob at the station at 9:30 on Friday."
    assert len(text) / 4 * 1.25 <= estimate_text_tokens(text) <= len(text) / 2


@given(st.text(), st.text())
def test_more_text_never_costs_less(one: str, other: str) -> None:
    """Adding text never lowers the estimate, and no text counts more tokens than it has bytes."""
    assert estimate_text_tokens(one) <= estimate_text_tokens(f"{one} {other}")
    assert estimate_text_tokens(one) <= len(one.encode("utf-8", "surrogatepass"))


@dataclass(frozen=True)
class Call:
    id: str
    name: str
    arguments: str


@dataclass(frozen=True)
class Acted:
    role: str
    content: str
    tool_calls: tuple[Call, ...] = ()
    tool_call_id: str | None = None


def test_calls_of_tools_are_counted() -> None:
    """The name and arguments of a tool call and the call's id in the answer count as tokens, because they are sent and
    billed like any text.
    """
    call = Acted("assistant", "", (Call("c-1", "look", "word"),))
    answer = Acted("tool", "word", tool_call_id="c-1")
    assert estimate_tokens([call]) == MESSAGE_OVERHEAD_TOKENS + TOOL_CALL_OVERHEAD_TOKENS + 3 + 2 + 2
    assert estimate_tokens([answer]) == MESSAGE_OVERHEAD_TOKENS + 2 + 3


@pytest.mark.covers("4.2")
def test_the_models_own_tokeniser_counts_where_there_is_one() -> None:
    """A model's own tokenizer counts exactly; models without one are estimated."""
    said = [Said("user", "seventeen")]
    assert estimate_tokens(said, len) == 9 + MESSAGE_OVERHEAD_TOKENS != estimate_tokens(said)


def test_each_message_has_its_overhead() -> None:
    """Each message adds a fixed overhead to the tokens of its text."""
    said = [Said("user", "word"), Said("assistant", "word")]
    assert estimate_tokens(said) == 2 * (2 + MESSAGE_OVERHEAD_TOKENS)
    assert estimate_tokens([]) == 0
