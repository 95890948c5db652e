"""Tests for `compaction.language.text`."""

from __future__ import annotations

import pytest

from compaction.language.text import (
    as_sentence,
    cut_at_word,
    ends_a_sentence,
    plain,
    sentences,
    whole_sentences,
    whole_words,
    words,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("We leave at nine. Bring the map!", ["We leave at nine.", "Bring the map!"]),
        ("Dr. Weber said so. Fine.", ["Dr. Weber said so.", "Fine."]),
        ("Wir treffen uns am 3. Mai. Gut.", ["Wir treffen uns am 3. Mai.", "Gut."]),
        ("It costs 3.5 euros. Ok?", ["It costs 3.5 euros.", "Ok?"]),
        ("No stops at all here", ["No stops at all here"]),
        ("我对花生过敏。你呢？", ["我对花生过敏。", "你呢？"]),
        ("", []),
    ],
)
def test_sentences_end_at_stops(text: str, expected: list[str]) -> None:
    """A text is split at its stops, and not at abbreviations, decimals and dates."""
    assert sentences(text) == expected


def test_plain_removes_marks() -> None:
    """Marks of lists, emphasis and code and control characters are removed."""
    assert plain("**Ada**\n`x`\x00 y") == "Ada x y"


def test_plain_keeps_words_whole() -> None:
    """Soft hyphens and zero-width characters stand inside words and leave no space behind."""
    assert plain("the Minis\u00adter\u200b of\u00a0Finance\ufeff") == "the Minister of Finance"


@pytest.mark.parametrize(
    ("text", "cut"),
    [
        ("We leave.", "We leave."),
        ("We leave at nine.", "We leave at …"),
        ("We eat, then leave.", "We eat …"),
        ("Donaudampfschiff", "Donaudampfs …"),
        ("", ""),
    ],
)
def test_a_text_is_cut_at_a_word(text: str, cut: str) -> None:
    """What fits stays as it is. A word that is too long by itself is cut."""
    assert cut_at_word(text, 11) == cut


def test_as_sentence_closes_and_cuts() -> None:
    """A sentence gets a stop, and is cut at a clause or a word if it is too long."""
    assert as_sentence("we leave at nine", 40) == "we leave at nine."
    assert as_sentence("we leave at nine, and then we eat", 20) == "we leave at nine."


def test_whole_sentences_cuts_none() -> None:
    """Only whole sentences are kept."""
    assert whole_sentences("One here. Two here. Three here.", 20) == "One here. Two here."


def test_words_lose_their_case() -> None:
    """Words are in lower case with straight apostrophes."""
    assert words("Don’t go, Ada!") == ["don't", "go", "ada"]
    assert ends_a_sentence("Go.”")
    assert not ends_a_sentence("Go")


@pytest.mark.parametrize(
    ("text", "max_chars", "kept"),
    [
        ("Bring the lemonade.", 40, "Bring the lemonade."),
        ("Bring the lemonade.", 12, "Bring the"),
        ("Bring the lemonade.", 9, "Bring the"),
        ("Bring\nthe lemonade.", 7, "Bring"),
        ("花生过敏的人不能来", 4, "花生过敏"),
        ("Bring the lemonade.", 0, ""),
    ],
)
def test_cut_ends_between_words(text: str, max_chars: int, kept: str) -> None:
    """As many whole words as fit are kept. Where no word ends in the second half, the text is cut at the limit."""
    assert whole_words(text, max_chars) == kept
