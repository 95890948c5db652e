"""Reads two numbers with a sign between them, in any language: '8-10', '3/4' and '8/10'. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import re
    from collections.abc import Mapping

# '8/10' is a rating, but '24/7' is not.
_RATING_SCALES = frozenset({"5", "10", "20", "100"})


def range_words(found: re.Match[str], to: str) -> str:
    """Return a range in words. `found`: its groups are the first number, the sign and the second number. `to`: the word
    between the two.
    """
    low, sign, high = found[1], found[2], found[3]
    # A hyphen between two numbers is a range only if the second is larger. Phone numbers and scores have hyphens too.
    return f"{low} {to} {high}" if sign == "–" or int(low) < int(high) else f"{low} {high}"


def fraction_words(found: re.Match[str], fractions: Mapping[str, str], of: str) -> str:
    """Return a fraction or a rating in words. `found`: its groups are the two numbers. `fractions`: those that have
    words of their own. `of`: the words of a rating, 'eight out of ten'.
    """
    if (words := fractions.get(found[0])) is not None:
        return words
    return f"{found[1]} {of} {found[2]}" if found[2] in _RATING_SCALES else f"{found[1]} {found[2]}"
