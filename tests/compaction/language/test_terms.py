"""Search terms are the same for stored text and for queries."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction.language.terms import (
    MAX_TERM_CHARS,
    MAX_TERMS,
    name_terms,
    normalized_words,
    query_terms,
    terms,
)


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
        ("Мы опоздали на поезде.", "поезд"),
        ("قطارنا يصل في السابعة", "القطار"),
        ("ﬁnal ½ Ⅷ", "final 1, 2, viii"),
        ("It's four four nine one.", "4491"),
        ("at twenty to nine-forty", "20, 9:40"),
        ("three hundred ten, forty-two, two thousand nineteen", "310, 42, 2019"),
        ("Die Hütten in Braemar sind am Montag frei.", "hütte braemar"),
        ("Wir treffen uns um neun am Bahnhof.", "9 bahnhof"),
        ("Ich habe Angst vor Hunden.", "Hat jemand Angst vor Hunden?"),
    ],
)
def test_what_is_asked_is_found_in_what_was_said(said: str, asked: str) -> None:
    """A question finds what was said despite different endings, case, accents, number words and scripts
    without spaces.
    """
    assert set(terms(asked)) <= set(terms(said))


def test_figures_that_are_said_in_a_row_are_one_term() -> None:
    """Codes with the same figures in another order differ. What stands between other words or signs is no row."""
    assert terms("four four one nine") != terms("four four nine one")
    assert terms("Levels 3, 4 and 5, one each.") == terms("level 3 and 4 and 5")


@pytest.mark.parametrize("text", ["", "   ", "what did you say", "😀🎉", "\ud83d", '"*():^-', "and then she was like"])
def test_what_means_nothing_has_no_terms(text: str) -> None:
    """Words without meaning, signs and half a character give no search terms."""
    assert terms(text) == ()


@pytest.mark.parametrize(
    ("said", "asked"),
    [
        ("Die Hütten in Braemar sind schon gebucht.", "Wann haben wir die Hütte gebucht?"),
        ("Ich nehme die allergischen Kinder mit.", "Wer ist denn noch mal allergisch?"),
        ("Das Spiel fängt um halb neun an.", "Fängt das Spiel um 9 an?"),
        ("Die Prüfungen sind im Juni.", "Weißt du noch, wann die Prüfung ist?"),
    ],
)
def test_a_german_question_is_about_its_nouns(said: str, asked: str) -> None:
    """Every term of a German question is found in German talk: its empty words are no terms, and endings go."""
    assert set(query_terms(asked)) <= set(terms(said)), (query_terms(asked), terms(said))
    assert query_terms(asked)


def test_a_short_question_finds_another_language() -> None:
    """Words that tell no language, such as a name, find what was said in any."""
    said = set(terms("Matthias hat die Schlüssel vom Haus seiner Tante."))
    for asked in ("Matthias", "What did Matthias do?", "Was hat Matthias gemacht?", "Schlüssel"):
        assert set(query_terms(asked)) & (said | set(name_terms("Matthias")))
    assert set(query_terms("Wo ist Matthias?")) <= set(name_terms("Matthias"))
    assert set(query_terms("Where is Matthias?")) <= set(name_terms("Matthias"))


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
