"""The known languages, and which of them a text is in. Another one needs a file like `german` and its name here."""

from __future__ import annotations

from importlib.metadata import version
from typing import TYPE_CHECKING

from compaction.language.english import ENGLISH
from compaction.language.german import GERMAN

if TYPE_CHECKING:
    from collections.abc import Sequence

    from compaction.language.language import Language

# The first is taken if the words of a text tell nothing.
LANGUAGES: tuple[Language, ...] = (ENGLISH, GERMAN)
# Part of what tells whether a stored search index is current.
STEMMER_VERSION = version("snowballstemmer")
# More words tell nothing new.
_WORDS = 200


def language_of(words: Sequence[str]) -> Language:
    """Return the language that has most of these lower-case words among its stop words and numbers."""
    return max(LANGUAGES, key=lambda each: sum(word in each.vocabulary for word in words[:_WORDS]))
