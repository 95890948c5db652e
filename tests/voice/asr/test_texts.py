"""What is told of a recognised text: loops, gibberish, described sounds, and ends of words."""

from __future__ import annotations

import tomllib
import unicodedata
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voice.asr.guards import compression_ratio, is_gibberish, remove_repetition
from voice.asr.sound_effect import is_sound_effect
from voice.asr.unspaced import word_ends

CASES = tomllib.loads((Path(__file__).parent / "gibberish_cases.toml").read_text("utf-8"))


@pytest.mark.parametrize("part", ["tuning", "apart"])
def test_gibberish_is_found_and_nothing_that_people_say(part: str) -> None:
    """Runs of one letter or syllable, mixed alphabets, broken signs and mere symbols are found. Names, laughter,
    drawn-out words, numbers and words full of consonants pass in every language of the table: what somebody said is
    never dropped.
    """
    cases = CASES[part]
    assert [text for text in cases["real"] if is_gibberish(text)] == []
    assert [text for text in cases["gibberish"] if not is_gibberish(text)] == []


@given(st.text(max_size=40))
def test_any_text_gets_an_answer(text: str) -> None:
    """No text raises an error, and a text with a run of one letter is gibberish whatever stands around it."""
    is_gibberish(text)
    assert is_gibberish(f"{text} nnnnnnnnn")


def test_a_hostile_text_is_judged_in_linear_work() -> None:
    """A text of 10,000 letters that almost repeats is answered: the search does not go back for every length."""
    assert not is_gibberish("abcde" * 2_000 + "x")


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("Lobsters and lobsters Lobsters and lobsters Lobsters and lob", "Lobsters and lobsters"),
        ("We leave at nine. We leave at nine. We leave at nine.", "We leave at nine."),
        ("no no no no no", "no"),
        ("so then a b a b a b a", "so then a b"),
        (
            "one two three four five six seven eight nine ten " * 2 + "one tw",
            "one two three four five six seven eight nine ten",
        ),
        (
            "it is now given to one in cases of a b c it is now given to one in cases o",
            "it is now given to one in cases of a b c",
        ),
        ("I said no, no", "I said no, no"),
        ("we leave at nine", "we leave at nine"),
        ("and the and", "and the and"),
        ("word", "word"),
        ("", ""),
    ],
)
def test_loops(text: str, kept: str) -> None:
    """A repeated phrase is kept once, without an incomplete last repetition. Other text is unchanged."""
    assert remove_repetition(text) == kept


@given(st.lists(st.sampled_from(["yes", "no", "nine", "we"]), max_size=40).map(" ".join))
def test_what_is_kept_is_the_beginning(text: str) -> None:
    kept = remove_repetition(text)
    assert text.startswith(kept)
    assert bool(kept) == bool(text)


def test_compression_ratio() -> None:
    """Repeated text has a higher compression ratio than an ordinary sentence."""
    assert compression_ratio("We leave at nine.") < 1.5
    assert compression_ratio("we leave " * 20) > 2.4


@pytest.mark.parametrize(
    ("text", "is_effect"),
    [
        *((text, True) for text in ("[laughter]", "(coughs)", "*sighs*", "♪ humming ♪", " [door closes]. ")),
        *(
            (text, False)
            for text in ("Ha ha ha!", "I said (twice) no.", "[laughter] Oh dear.", "", "[]", "(a) and (b)")
        ),
    ],
)
def test_a_described_sound_is_an_effect(text: str, is_effect: bool) -> None:
    """A text with spoken words is none, even if it has brackets."""
    assert is_sound_effect(text) is is_effect


# The blocks of these scripts in which signs have marks.
MARKED = "".join(
    map(chr, (*range(0x0E00, 0x0F00), *range(0x1000, 0x10A0), *range(0x1780, 0x1800), *range(0x3040, 0x3100)))
)


def is_mark(sign: str) -> bool:
    return unicodedata.category(sign) in {"Mn", "Mc"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Good evening, all.", ["Good", " evening,", " all."]),
        ("今晚好。", ["今晚", "好。"]),
        ("ขอบคุณที่มา", ["ขอ", "บคุ", "ณที่", "มา"]),
        ("မြန်မာ", ["မြန်", "မာ"]),
        ("ភាសាខ្មែរ", ["ភាសា", "ខ្មែ", "រ"]),
    ],
)
def test_two_signs_with_their_marks_are_a_word(text: str, words: list[str]) -> None:
    ends = [0, *word_ends(text)]
    assert [text[start:end] for start, end in pairwise(ends)] == words


@given(st.text(alphabet=MARKED, max_size=60))
def test_no_sign_is_cut_from_its_marks(text: str) -> None:
    ends = list(word_ends(text))
    assert ends == sorted(set(ends))
    assert not any(is_mark(text[end]) for end in ends if end < len(text))
