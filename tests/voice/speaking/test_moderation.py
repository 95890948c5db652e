"""Matching words that the bot must not speak."""

from __future__ import annotations

import pytest

from voice.speaking.moderation import WordList


@pytest.mark.parametrize(
    ("words", "text", "forbidden"),
    [
        (("rude",), "How Rude!", True),
        (("rude",), "A rudeness", False),
        (("rude*",), "A rudeness", True),
        (("two words",), "These two words.", True),
        (("a.b",), "axb", False),
        ((), "anything", False),
        (("", "*", " "), "anything", False),
    ],
)
def test_whole_words_are_forbidden(words: tuple[str, ...], text: str, forbidden: bool) -> None:
    """Whole words match in any case. A star stands for letters, and an empty entry matches nothing."""
    assert WordList(words).forbids(text) is forbidden
