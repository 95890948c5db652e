"""The scripts that are written without spaces between words, and where words end in a text that may have them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

# Thai, Lao, Burmese, Khmer, Japanese and Chinese, for a character class of a regular expression. About two signs make
# a word.
UNSPACED = r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff"
# Vowels, tones and other marks of these scripts that belong to the sign before them (Unicode's categories Mn and Mc).
_MARKS = (
    r"\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u0eb1\u0eb4-\u0ebc\u0ec8-\u0ece\u102b-\u103e\u1056-\u1059\u105e-\u1060\u1062-\u1064"
    r"\u1067-\u106d\u1071-\u1074\u1082-\u108d\u108f\u109a-\u109d\u17b4-\u17d3\u17dd\u3099\u309a"
)
# A word with the punctuation after it.
_WORD = re.compile(rf"(?:[{UNSPACED}][{_MARKS}]*){{1,2}}[^\w\s{UNSPACED}]*|[^\s{UNSPACED}]+")


def word_ends(text: str, start: int = 0) -> Iterator[int]:
    """Yield where each word of `text` ends, from `start` on. In scripts without spaces two signs count as one word,
    each with its marks.
    """
    return (word.end() for word in _WORD.finditer(text, start))
