"""The scripts that are written without spaces between words, and where words end in a text that may have them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

# Thai, Lao, Burmese, Khmer, Japanese and Chinese, for a character class of a regular expression. About two signs make
# a word.
UNSPACED = r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff"
# A word with the punctuation after it.
_WORD = re.compile(rf"[{UNSPACED}]{{1,2}}[^\w\s{UNSPACED}]*|[^\s{UNSPACED}]+")


def word_ends(text: str, start: int = 0) -> Iterator[int]:
    """Yield where each word of `text` ends, from `start` on. In scripts without spaces two signs count as one word."""
    return (word.end() for word in _WORD.finditer(text, start))
