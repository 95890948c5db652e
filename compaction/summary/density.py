"""How much a sentence holds for its length. Summaries without a model choose the densest sentences. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from compaction.language.meaning import Meaning

# A name or a figure is harder to guess than a topic.
VALUE_WEIGHT = 2.0
# Long sentences hold more, but less than in proportion.
_LENGTH_EXPONENT = 0.7
# Shorter sentences cost as much as this, so that a lone word does not win.
_LEAST_CHARS = 12


def substance(said: Meaning) -> float:
    """Return how many topics, names and values a sentence has, names and values weighted."""
    return len(said.topics) + VALUE_WEIGHT * len(said.names | said.values)


def cost(chars: int) -> float:
    """Return what a sentence of this length costs, to divide its worth by."""
    return float(max(chars, _LEAST_CHARS) ** _LENGTH_EXPONENT)


def density(said: Meaning, text: str) -> float:
    """Return the substance of a sentence for what its length costs."""
    return substance(said) / cost(len(text))
