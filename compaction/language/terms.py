"""Search terms: the words of a text that the index stores and a query searches for. Pure.

Words lose case and accents and become English stems. Number words become digits, and stop words are left out. Scripts
without spaces give overlapping pairs of characters. A term consists of letters and digits only, so nothing that people
say can be mistaken for search syntax.
"""

from __future__ import annotations

import re
import zlib
from typing import TYPE_CHECKING
from unicodedata import category, normalize

from compaction.language.languages import NUMBER_WORDS, STEMMER_VERSION, STOPWORDS, stem

if TYPE_CHECKING:
    from collections.abc import Iterator

# Longer strings are not words, and further terms of a text say little more about its subject.
MAX_TERM_CHARS = 40
MAX_TERMS = 400
# How many characters of a text are read. A turn is rarely longer than 1,200 characters.
MAX_CHARS = 8_000

_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}\b)")
# Han, kana, Hangul, Thai, Lao, Khmer and Burmese, which have no spaces between words or have long endings.
UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af"
    "\uf900-\ufaff\U00020000-\U0003ffff]+"
)
# Two more words are ignored, because questions begin with them ('Do you remember …', 'Tell me …').
_EMPTY = STOPWORDS | {"remember", "tell"}
# Increase this number with every change in the results of `terms`. Stored passages are then indexed again
# (`bot.store.indexing`).
_RULES_VERSION = 3


def terms_version() -> int:
    """Return a number that changes whenever `terms` may return something else, because of other rules or another
    stemmer.
    """
    return zlib.crc32(f"{_RULES_VERSION} snowball {STEMMER_VERSION}".encode())


def terms(text: str) -> tuple[str, ...]:
    """Return the terms of a text in order, including repetitions; at most `MAX_TERMS`."""
    found: list[str] = []
    for word in plain_words(text):
        for term in _terms_of(word):
            found.append(term)
            if len(found) == MAX_TERMS:
                return tuple(found)
    return tuple(found)


def normalized_words(text: str) -> tuple[str, ...]:
    """Return every word of a text in lower case without accents, including stop words. Used to compare names."""
    return tuple(word[:MAX_TERM_CHARS] for word in plain_words(text))[:MAX_TERMS]


def plain_words(text: str) -> Iterator[str]:
    """Yield the words of a text in lower case, without accents."""
    bare = text[:MAX_CHARS].casefold()
    if not bare.isascii():  # NFC puts characters together again; otherwise Hangul syllables would be single letters.
        bare = normalize("NFC", "".join(char for char in normalize("NFKD", bare) if category(char)[0] != "M"))
    for match in _WORD.finditer(_THOUSANDS.sub("", bare)):
        yield match.group().replace("’", "'")


def _terms_of(word: str) -> Iterator[str]:
    if word in _EMPTY:
        return
    if word in NUMBER_WORDS:
        yield NUMBER_WORDS[word]
        return
    for piece in word.removesuffix("'s").split("'"):
        if piece in _EMPTY:
            continue
        start = 0
        for run in UNSPACED.finditer(piece):
            yield from _plain_term(piece[start : run.start()])
            yield from _pairs(run.group())
            start = run.end()
        yield from _plain_term(piece[start:])


def _plain_term(word: str) -> Iterator[str]:
    # A single letter is a slip or the rest of a contraction, so it is ignored. A single digit is a number.
    if len(word) > 1 or word.isdigit():
        cut = word[:MAX_TERM_CHARS]
        yield cut.lstrip("0") or "0" if cut.isdigit() else stem(cut)


def _pairs(run: str) -> Iterator[str]:
    if len(run) == 1:
        yield run
    for at in range(len(run) - 1):
        yield run[at : at + 2]
