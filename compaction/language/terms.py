"""Which words of a text count when it is searched: the same for what is stored and for what is asked. Pure.

Words are folded (case, accents, commonest English endings), number words become digits, words that carry no meaning
are left out. Scripts written without spaces give overlapping pairs of characters. A term has letters and digits
alone, so whatever people say, nothing of it can be taken for search syntax.
"""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING

from compaction.language.lexicon import NUMBER_WORDS, STOPWORDS

if TYPE_CHECKING:
    from collections.abc import Iterator

# Longer words are no words; longer texts say no more about what they are about.
MAX_TERM_CHARS = 40
MAX_TERMS = 400
# Characters of a text that are looked at: a turn is rarely longer than 1,200.
MAX_CHARS = 8_000

_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}\b)")
# Han, kana, Hangul, Thai, Lao, Khmer, Burmese: no spaces between words, or long endings.
UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af"
    "\uf900-\ufaff\U00020000-\U0003ffff]+"
)
_VOWELS = frozenset("aeiouy")
# Short words that only ask; the list of empty words has the others.
_ASKING = frozenset(
    {"what", "when", "where", "which", "who", "whom", "whose", "why", "how", "much", "tell", "remember"}
)
_EMPTY = STOPWORDS | _ASKING


def terms(text: str) -> tuple[str, ...]:
    """Return the terms of a text in order, repeated as they are in it; at most `MAX_TERMS`."""
    found: list[str] = []
    for word in bare_words(text):
        for term in _terms_of(word):
            found.append(term)
            if len(found) == MAX_TERMS:
                return tuple(found)
    return tuple(found)


def folded(text: str) -> tuple[str, ...]:
    """Return every word of a name in lower case without accents, empty words included: names are compared by it."""
    return tuple(word[:MAX_TERM_CHARS] for word in bare_words(text))[:MAX_TERMS]


def stem(word: str) -> str:
    """Return a lower-case word without plural, -ed and -ing, so that 'visited' and 'visits' are one term.

    Steps 1a to 1c of M. F. Porter, 'An algorithm for suffix stripping' (1980). Other alphabets stay as they are.
    """
    if len(word) < 3 or not word.isascii() or not word.isalpha():
        return word
    word = _without_plural(word)
    if word.endswith("eed"):
        return word[:-1] if _VOWELS & set(word[:-3]) else word
    for ending in ("ed", "ing"):
        root = word.removesuffix(ending)
        if root != word and len(root) > 1 and _VOWELS & set(root):
            word = _mended(root)
            break
    if word.endswith("y") and len(word) > 2 and word[-2] not in _VOWELS:
        word = f"{word[:-1]}i"
    return word


def _without_plural(word: str) -> str:
    if word.endswith("sses"):
        return word[:-2]
    if word.endswith("ies"):
        return word[:-2] if len(word) > 4 else word[:-1]
    if word.endswith("s") and not word.endswith(("ss", "us", "is")) and len(word) > 3:
        return word[:-1]
    if word.endswith("ie") and len(word) > 4:
        # As 'cookies' is: without this they would be two.
        return word[:-1]
    return word


def _mended(root: str) -> str:
    """Return a root as its word is written: 'hopp' is 'hop', 'bak' is 'bake'."""
    if root.endswith(("at", "bl", "iz")):
        return f"{root}e"
    if root[-1] == root[-2] and root[-1] not in "lsz" and root[-1] not in _VOWELS:
        return root[:-1]
    short = len(root) == 3 and root[0] not in _VOWELS and root[1] in _VOWELS and root[2] not in "aeiouywx"
    return f"{root}e" if short else root


def bare_words(text: str) -> Iterator[str]:
    """Yield the words of a text in lower case, without accents."""
    decomposed = unicodedata.normalize("NFKD", text[:MAX_CHARS].casefold())
    bare = "".join(char for char in decomposed if not unicodedata.category(char).startswith("M"))
    # Composed again, or Hangul would be letters and no syllables.
    for match in _WORD.finditer(_THOUSANDS.sub("", unicodedata.normalize("NFC", bare))):
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
    # A single letter is a slip or what is left of a contraction; a single figure is a number.
    if len(word) > 1 or word.isdigit():
        yield (word.lstrip("0") or "0" if word.isdigit() else stem(word))[:MAX_TERM_CHARS]


def _pairs(run: str) -> Iterator[str]:
    if len(run) == 1:
        yield run
    for at in range(len(run) - 1):
        yield run[at : at + 2]
