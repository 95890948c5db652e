"""Adds up how much of what was said in recordings was heard."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rehearsal.words import WordErrors, sum_word_errors, word_errors

if TYPE_CHECKING:
    from benchmarks.report import Json


@dataclass(slots=True)
class HeardWords:
    """The word errors of each recording. `lost`: recordings without any text. `unlike`: texts with at least as many
    errors as words were said, as gibberish has.
    """

    errors: list[WordErrors] = field(default_factory=list)
    lost: int = 0
    unlike: int = 0

    def add(self, said: str, heard: str) -> None:
        """Add one recording."""
        errors = word_errors(said, heard)
        self.errors.append(errors)
        self.lost += not heard
        self.unlike += bool(heard) and errors.errors >= errors.words

    @property
    def rate(self) -> float:
        """Return the word error rate over all recordings; a lost one counts with all its words."""
        return sum_word_errors(self.errors).rate

    def figures(self) -> dict[str, Json]:
        """Return the figures for the report."""
        return {
            "recordings": len(self.errors),
            "words": sum_word_errors(self.errors).words,
            "word_error_rate": round(self.rate, 4),
            "without_text": self.lost,
            "unlike_what_was_said": self.unlike,
        }
