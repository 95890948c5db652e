"""Where words end in scripts that are written without spaces."""

from __future__ import annotations

import unicodedata
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voice.asr.unspaced import word_ends

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
