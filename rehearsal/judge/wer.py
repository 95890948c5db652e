"""Word error rate as Whisper's authors count it: their English normaliser, then edit distance over words."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import jiwer

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True, slots=True)
class WordErrors:
    """Substitutions, deletions and insertions together, over the words of the reference."""

    errors: int
    words: int

    @property
    def rate(self) -> float:
        """Return errors per reference word; of nothing said, 0 when nothing was heard and 1 otherwise."""
        if not self.words:
            return float(bool(self.errors))
        return self.errors / self.words


def normalised(text: str) -> str:
    """Return `text` in the form that is compared: lower case, no punctuation, numbers and spelling unified."""
    return str(_normaliser()(text)).strip()


def word_errors(reference: str, hypothesis: str) -> WordErrors:
    """Compare two texts after normalisation."""
    said, heard = normalised(reference), normalised(hypothesis)
    if not said:
        return WordErrors(len(heard.split()), 0)
    if not heard:
        words = len(said.split())
        return WordErrors(words, words)
    found = jiwer.process_words(said, heard)
    return WordErrors(found.substitutions + found.deletions + found.insertions, len(said.split()))


def total(parts: Iterable[WordErrors]) -> WordErrors:
    """Return the errors and words of all parts together."""
    listed = tuple(parts)
    return WordErrors(sum(part.errors for part in listed), sum(part.words for part in listed))


@cache
def _normaliser() -> Any:
    # Its tables take half a second to load, so not before the first comparison.
    with warnings.catch_warnings():
        # The package spells a regular expression with an invalid escape; nobody here can act on that.
        warnings.simplefilter("ignore", DeprecationWarning)
        warnings.simplefilter("ignore", SyntaxWarning)
        from whisper_normalizer.english import EnglishTextNormalizer

    return EnglishTextNormalizer()
