"""Where a stream of text is cut for speaking."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voice.speaking.sentences import MAX_PIECE_CHARS, SentenceSplitter


def pieces_of(text: str, step: int = 1) -> list[str]:
    """Feed `text` in pieces of `step` characters and return everything that came out."""
    splitter = SentenceSplitter()
    out: list[str] = []
    for start in range(0, len(text), step):
        out += splitter.feed(text[start : start + step])
    return out + splitter.flush()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Sure. I can do that.", ["Sure.", "I can do that."]),
        ("Dr. Gray met J. Smith at 3.5 p.m. today. Fine!", ["Dr. Gray met J. Smith at 3.5 p.m. today.", "Fine!"]),
        ('He said "no." Then he left.', ['He said "no."', "Then he left."]),
        ("One\nTwo", ["One", "Two"]),
        ("", []),
        ("  \n ", []),
        ("Well… maybe?! Yes", ["Well…", "maybe?!", "Yes"]),
    ],
)
def test_text_is_cut_at_sentence_ends(text: str, expected: list[str]) -> None:
    """Sentence ends cut; abbreviations, initials and decimals do not."""
    assert pieces_of(text) == expected


def test_first_clause_is_spoken_before_its_sentence_ends() -> None:
    """A listener waits for the first words, so a clause of 40 characters is let go at once."""
    splitter = SentenceSplitter()
    first = splitter.feed("If I remember it right, and I think that I do, the ")
    assert first == ["If I remember it right, and I think that I do,"]
    assert splitter.feed("boat, which was blue, left at six, ") == []


def test_text_without_punctuation_is_cut_at_a_space() -> None:
    """No piece grows past the limit, whatever the model writes."""
    out = pieces_of("word " * 200)
    assert max(map(len, out)) <= MAX_PIECE_CHARS
    assert " ".join(out).split() == ["word"] * 200


@given(text=st.text(max_size=600), step=st.integers(1, 50))
def test_no_character_is_lost_or_made_up(text: str, step: int) -> None:
    """Whatever the stream and its chunking, the pieces hold exactly its visible characters, in order."""
    assert "".join("".join(pieces_of(text, step)).split()) == "".join(text.split())


@given(text=st.text(alphabet="ab .,!\n", max_size=300), step=st.integers(2, 50))
def test_no_piece_is_blank_or_too_long(text: str, step: int) -> None:
    """Nothing blank goes to the voice, and nothing too long."""
    for piece in pieces_of(text, step):
        assert piece.strip()
        assert len(piece) <= MAX_PIECE_CHARS
