"""Compares words: word error rate, whether a text contains words, and whether a recogniser could have heard them.

Texts are compared as Whisper's authors do it, with their English normaliser and then the edit distance over words.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cache
from typing import Any

import jiwer

# A small recogniser writes "half-pass six" or "half-passix" for "half past six", and "9 busted" for "9 bus to". So one
# word in three may differ if it is at least this similar. A longer word may always differ if it is a little more
# similar. If the recogniser divides the words differently, the letters of the whole phrase are compared.
MIN_WORD_SIMILARITY = 0.6
MIN_LONG_WORD_SIMILARITY = 0.8
LONG_WORD_LETTERS = 5
MIN_PHRASE_SIMILARITY = 0.82
MIN_PHRASE_LENGTH_SHARE = 0.85
_NOT_LETTERS = re.compile(r"[^\w]+")


@dataclass(frozen=True, slots=True)
class WordErrors:
    """The number of substitutions, deletions and insertions together, and the number of words in the reference."""

    errors: int
    words: int

    @property
    def rate(self) -> float:
        """Return the errors per reference word. Without reference words: 0 if nothing was heard, else 1."""
        if not self.words:
            return float(bool(self.errors))
        return self.errors / self.words


def normalize_words(text: str) -> str:
    """Return `text` in the form used for comparison: lower case, no punctuation, and one spelling for numbers and
    words.
    """
    return str(_normaliser()(text)).strip()


def word_errors(reference: str, hypothesis: str) -> WordErrors:
    """Count the word errors of `hypothesis` against the reference. Both texts are normalised first."""
    said, heard = normalize_words(reference), normalize_words(hypothesis)
    if not said:
        return WordErrors(len(heard.split()), 0)
    if not heard:
        words = len(said.split())
        return WordErrors(words, words)
    found = jiwer.process_words(said, heard)
    return WordErrors(found.substitutions + found.deletions + found.insertions, len(said.split()))


def sum_word_errors(parts: Iterable[WordErrors]) -> WordErrors:
    """Return the errors and words of all parts together."""
    listed = tuple(parts)
    return WordErrors(sum(part.errors for part in listed), sum(part.words for part in listed))


def contains_words(text: str, words: str) -> bool:
    """Return whether the text contains these words after normalisation, as whole words and in this order."""
    return f" {normalize_words(words)} " in f" {normalize_words(text)} "


def sounds_like(heard: str, words: str) -> bool:
    """Return whether `heard` could be a recogniser's text for `words`: similar words in this order, and no other
    number.
    """
    expected, written = normalize_words(words).split(), normalize_words(heard).split()
    if any(
        _similar_words(written[at : at + len(expected)], expected) for at in range(len(written) - len(expected) + 1)
    ):
        return True
    return len(expected) > 1 and any(_similar_letters(phrase, words) for phrase in _phrases(heard, len(words.split())))


def _phrases(text: str, count: int) -> Iterator[str]:
    """Yield every sequence of about `count` consecutive words of a text, in their original spelling."""
    words = _NOT_LETTERS.sub(" ", text).split()
    for length in (count - 1, count, count + 1):
        for at in range(len(words) - length + 1):
            yield " ".join(words[at : at + length])


def _similar_letters(phrase: str, words: str) -> bool:
    one, other = (_NOT_LETTERS.sub("", text).casefold() for text in (phrase, words))
    if (
        len(one) < MIN_PHRASE_LENGTH_SHARE * len(other)
        or SequenceMatcher(None, one, other).ratio() < MIN_PHRASE_SIMILARITY
    ):
        return False
    numbers = [{word for word in normalize_words(text).split() if word[0].isdigit()} for text in (phrase, words)]
    return numbers[0] <= numbers[1]


def _similar_words(written: Sequence[str], expected: Sequence[str]) -> bool:
    """Return whether two lists of the same length are similar, compared word for word."""
    different = 0
    for one, other in zip(written, expected, strict=True):
        if one == other:
            continue
        similarity = 0.0 if one[0].isdigit() or other[0].isdigit() else SequenceMatcher(None, one, other).ratio()
        if len(other) >= LONG_WORD_LETTERS and similarity >= MIN_LONG_WORD_SIMILARITY:
            continue
        if similarity < MIN_WORD_SIMILARITY:
            return False
        different += 1
    return different <= len(expected) // 3


@cache
def _normaliser() -> Any:
    # The import is delayed until the first comparison, because loading the normaliser's tables takes half a second.
    with warnings.catch_warnings():
        # The package contains a regular expression with an invalid escape, and users of the rehearsal cannot fix that.
        warnings.simplefilter("ignore", DeprecationWarning)
        warnings.simplefilter("ignore", SyntaxWarning)
        from whisper_normalizer.english import EnglishTextNormalizer

    return EnglishTextNormalizer()
