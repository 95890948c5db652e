"""Fills the caches of sentences and of Python, as a bot has them that has lived for hours.

They hold so much that an hour of a lively room fills them by half, which looks like growth without an end. Filled
before, what they take is in the first sample.
"""

from __future__ import annotations

import sys
from typing import Final

from compaction.language.meaning import meaning
from compaction.sentence_cache import MOST_MEANINGS, MOST_STEMS

_CONSONANTS: Final = "bdfgklmnprtvz"
_VOWELS: Final = "aou"
# More than the free places of a dictionary with 170,000 entries; a bot's has 60,000.
_INTERNED: Final = 400_000
_SYLLABLES: Final = tuple(one + other for one in _CONSONANTS for other in _VOWELS)


def fill_sentence_caches() -> None:
    """Read as many sentences, with as many words, as are remembered. Blocks for some seconds."""
    new_words = -(-MOST_STEMS // MOST_MEANINGS)
    for number in range(MOST_MEANINGS):
        words = " ".join(_word(number * new_words + place) for place in range(new_words))
        # With a name and a value, which are sets of their own, as in what people say.
        meaning(f"At {number % 12}:30 we saw an old bridge with Chloe and {words} beside the river.")


def fill_interned_strings() -> None:
    """Let Python's dictionary of interned strings have its final size. Blocks for a tenth of a second.

    Python and its C libraries enter each name that they look up, and take it out when nobody holds it any more. A place
    is not used again before the dictionary is copied, into one with room for three times what is in it. In a live room
    that was after 42 minutes, and took 1.9 MB more; the copies after that one are as large.
    """
    for number in range(_INTERNED):
        sys.intern(f"held by nobody {number}")


def _word(number: int) -> str:
    """Return an invented word that no stemmer shortens, another one for each number below 59,319."""
    syllables = ""
    for _ in range(3):
        number, place = divmod(number, len(_SYLLABLES))
        syllables += _SYLLABLES[place]
    return f"{syllables}k"
