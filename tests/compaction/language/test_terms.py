"""Search terms are the same for stored text and for queries."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction.language.terms import MAX_TERM_CHARS, MAX_TERMS, normalized_words, terms


@pytest.mark.parametrize(
    ("said", "asked"),
    [
        ("I was visiting the museums", "visit museum"),
        ("We baked cookies", "baking cookie"),
        ("It costs 4,411 euros", "4411"),
        ("at seven o'clock", "7"),
        ("Naïve CAFÉ Straße", "naive cafe strasse"),
        ("Ada's dog", "ada dog"),
        ("the parties agreed", "party agree"),
        ("明天下午三点", "下午"),
        ("회의는 세시", "회의"),
        ("ﬁnal ½ Ⅷ", "final 1 2 viii"),
    ],
)
def test_what_is_asked_is_found_in_what_was_said(said: str, asked: str) -> None:
    """A question finds what was said despite different endings, case, accents, number words and scripts
    without spaces.
    """
    assert set(terms(asked)) <= set(terms(said))


@pytest.mark.parametrize("text", ["", "   ", "what did you say", "😀🎉", "\ud83d", '"*():^-', "and then she was like"])
def test_what_means_nothing_has_no_terms(text: str) -> None:
    """Words without meaning, signs and half a character give no search terms."""
    assert terms(text) == ()


@given(st.text(max_size=400))
def test_a_term_is_letters_and_digits_alone(text: str) -> None:
    """A term has only letters and digits, so it cannot be search syntax, a separator of filter tags, or more than one
    word of the index.
    """
    found = terms(text)
    assert len(found) <= MAX_TERMS
    assert all(term.isalnum() and 0 < len(term) <= MAX_TERM_CHARS for term in found)
    assert terms(" ".join(found)) is not None


@given(st.text(max_size=200))
def test_case_and_form_make_no_difference(text: str) -> None:
    """The same text in other Unicode code points (NFD and NFC) has the same terms."""
    import unicodedata

    assert terms(unicodedata.normalize("NFD", text)) == terms(unicodedata.normalize("NFC", text))


def test_long_texts_are_bounded() -> None:
    """Of a long text only the first words become terms, and a long word is cut."""
    assert len(terms("word " * 50_000)) == MAX_TERMS
    assert terms("x" * 1_000_000) == ("x" * MAX_TERM_CHARS,)


def test_names_keep_their_empty_words() -> None:
    """Words that are usually ignored are kept in a name such as 'The Who'."""
    assert normalized_words("The Who") == ("the", "who")
