"""Shortens a text that is a little too long: leaves out what stands in brackets. Pure.

Whatever else is left out of dense prose may turn the rest: the next 'she' is somebody else then. A bracket is an aside
to what stands before it, and the sentence is whole without it.
"""

from __future__ import annotations

import re
from itertools import accumulate

# Brackets in brackets are left alone, but for the inner ones.
_ASIDE = re.compile(r" ?\([^()]*\)| ?（[^（）]*）")


def without_asides(text: str, most_chars: int) -> str | None:
    """Return `text` without as few characters of asides as make it at most so long; None if that is not enough.

    One aside if one is enough: the shortest such. Otherwise the longest ones.
    """
    excess = len(text) - most_chars
    if excess <= 0:
        return text
    asides = sorted((found.span() for found in _ASIDE.finditer(text)), key=lambda span: span[1] - span[0])
    one = next((span for span in asides if span[1] - span[0] >= excess), None)
    if one is not None:
        return _without(text, [one])
    longest = asides[::-1]
    gained = list(accumulate(end - begin for begin, end in longest))
    needed = next((count for count, chars in enumerate(gained, 1) if chars >= excess), None)
    return None if needed is None else _without(text, longest[:needed])


def _without(text: str, spans: list[tuple[int, int]]) -> str:
    for begin, end in sorted(spans, reverse=True):
        text = text[:begin] + text[end:]
    return text
