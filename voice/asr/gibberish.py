"""Recognises texts that no language has: runs of one letter, a syllable without end, scripts mixed within words.

Only the structure of a text counts; no rule knows a language. Loops of whole words belong to `repetition` and `guards`.
"""

from __future__ import annotations

import re
import unicodedata

# No word of any language has a letter this often in a row. People who draw a word out are written with three to five.
LETTER_RUN = 7
# A thousand billions have twelve zeros.
DIGIT_RUN = 14
# Laughter is written with up to ten syllables. A longer series of one syllable is the recogniser's loop.
SYLLABLE_LETTERS = 4
SYLLABLE_TIMES = 7
SYLLABLE_RUN_LETTERS = 24
# A text with fewer letters and digits among its visible signs than this is made of symbols.
MIN_WORD_SIGNS = 0.35
# Bytes that are no text become this sign; one alone may stand for a rare one.
REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
MOST_REPLACEMENTS = 1
# Alphabets of which a word has one. Scripts that are used together (Japanese with Latin letters) are not among them.
SEPARATE_ALPHABETS = frozenset({"LATIN", "CYRILLIC", "GREEK", "ARABIC", "HEBREW", "ARMENIAN", "GEORGIAN", "DEVANAGARI"})
# One such word may be a name or a unit.
MIXED_WORDS = 2

_LETTER_RUN = re.compile(rf"([^\W\d_])\1{{{LETTER_RUN - 1},}}")
_DIGIT_RUN = re.compile(rf"(\d)\1{{{DIGIT_RUN - 1},}}")
_SYLLABLE_RUN = re.compile(rf"([^\W\d_]{{1,{SYLLABLE_LETTERS}}}?)\1{{{SYLLABLE_TIMES - 1},}}")


def is_gibberish(text: str) -> bool:
    """Return whether `text` cannot be anybody's words, whatever the language. An empty text is not gibberish."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return (
        _LETTER_RUN.search(folded) is not None
        or _DIGIT_RUN.search(folded) is not None
        or any(len(found.group()) >= SYLLABLE_RUN_LETTERS for found in _SYLLABLE_RUN.finditer(folded))
        or folded.count(REPLACEMENT) > MOST_REPLACEMENTS
        or _is_symbols(folded)
        or sum(_mixes_alphabets(word) for word in folded.split()) >= MIXED_WORDS
    )


def _is_symbols(text: str) -> bool:
    visible = [sign for sign in text if not sign.isspace()]
    return bool(visible) and sum(_is_word_sign(sign) for sign in visible) < MIN_WORD_SIGNS * len(visible)


def _is_word_sign(sign: str) -> bool:
    # Vowel signs of Indic scripts are marks (M), and as much of a word as letters.
    return unicodedata.category(sign)[0] in "LMN"


def _mixes_alphabets(word: str) -> bool:
    scripts = {unicodedata.name(sign, "").partition(" ")[0] for sign in word if sign.isalpha()}
    return len(scripts & SEPARATE_ALPHABETS) > 1
