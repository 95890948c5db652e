"""How the judge reads a summary: it splits sentences and checks whether words occur in them.

This module is written only for the benchmark. It shares nothing with the code under test, so that an error in one
cannot hide an error in the other.
"""

from __future__ import annotations

import re
from functools import lru_cache

# A sentence ends at a full stop or another end mark before white space, or at the end of a line. 'e.g.' and '7.30' do
# not end one.
_SENTENCE_END = re.compile(r"(?<=[.!?…])[\"'”’)]*\s+(?=\S)|\n+")
_NOT_WORD = re.compile(r"\W+")
_ABBREVIATION = re.compile(r"\b(?:e\.g|i\.e|etc|mr|mrs|ms|dr|st|vs|no|approx)\.$", re.IGNORECASE)


def read_sentences(text: str) -> list[str]:
    """Return the sentences of a text in order, without blank ones."""
    found: list[str] = []
    carried = ""
    for piece in _SENTENCE_END.split(text):
        whole = f"{carried} {piece}".strip() if carried else piece.strip()
        carried = ""
        # 'No.' alone is usually an answer and not the abbreviation of 'number', so it ends a sentence.
        if _ABBREVIATION.search(whole) and not re.fullmatch(r"(?:\w+: )?no\.", whole, re.IGNORECASE):
            carried = whole
        elif whole:
            found.append(whole)
    if carried:
        found.append(carried)
    return found


def letters(text: str) -> str:
    """Return only the letters and digits of a text, in lower case."""
    return _NOT_WORD.sub("", text.casefold())


def mentions(text: str, phrase: str) -> bool:
    """Return whether a text contains these words in this order, as whole words and in any case."""
    return _phrase(phrase).search(text) is not None


@lru_cache(maxsize=20_000)
def _phrase(phrase: str) -> re.Pattern[str]:
    words = r"\W+".join(re.escape(word) for word in phrase.split())
    return re.compile(rf"(?<!\w){words}(?!\w)", re.IGNORECASE)


def mentions_any(text: str, phrases: tuple[str, ...]) -> bool:
    """Return whether a text contains one of these phrases."""
    return any(mentions(text, phrase) for phrase in phrases)
