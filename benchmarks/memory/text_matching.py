"""How a summary is read by the judge: sentences, and whether words occur in them.

Written for the benchmark alone. It shares nothing with the code under test, so that one cannot be wrong in the
other's favour.
"""

from __future__ import annotations

import re
from functools import lru_cache

# A sentence ends at its mark before white space, or at the end of a line. 'e.g.' and '7.30' don't end one.
_SENTENCE_END = re.compile(r"(?<=[.!?…])[\"'”’)]*\s+(?=\S)|\n+")
_ABBREVIATION = re.compile(r"\b(?:e\.g|i\.e|etc|mr|mrs|ms|dr|st|vs|no|approx)\.$", re.IGNORECASE)


def read_sentences(text: str) -> list[str]:
    """Return the sentences of a text, in order, without blank ones."""
    found: list[str] = []
    carried = ""
    for piece in _SENTENCE_END.split(text):
        whole = f"{carried} {piece}".strip() if carried else piece.strip()
        carried = ""
        # 'No.' is an answer far more often than a number here, so only an abbreviation with letters before counts.
        if _ABBREVIATION.search(whole) and not re.fullmatch(r"(?:\w+: )?no\.", whole, re.IGNORECASE):
            carried = whole
        elif whole:
            found.append(whole)
    if carried:
        found.append(carried)
    return found


def mentions(text: str, phrase: str) -> bool:
    """Return whether a text has these words in this order, whatever the case, and not inside other words."""
    return _phrase(phrase).search(text) is not None


@lru_cache(maxsize=20_000)
def _phrase(phrase: str) -> re.Pattern[str]:
    words = r"\W+".join(re.escape(word) for word in phrase.split())
    return re.compile(rf"(?<!\w){words}(?!\w)", re.IGNORECASE)


def mentions_any(text: str, phrases: tuple[str, ...]) -> bool:
    """Return whether a text has one of these."""
    return any(mentions(text, phrase) for phrase in phrases)
