"""The stemmer: what the forms of an English word have in common, such as 'visit' of 'visited' and 'visits'.

The search index stores stems (`terms`), so `STEMMER_VERSION` is part of what tells whether a stored index is current.
"""

from __future__ import annotations

import threading
from importlib.metadata import version

# Not `snowballstemmer.stemmer()`: that prefers PyStemmer where it is installed, whose stems may differ.
from snowballstemmer.english_stemmer import EnglishStemmer

from compaction.language.sentence_cache import sentence_cache

STEMMER_VERSION = version("snowballstemmer")


class _ThreadStemmer(threading.local):
    """One Snowball stemmer for each thread, because it keeps the word at hand in itself."""

    def __init__(self) -> None:
        self.english = EnglishStemmer()


_stemmer = _ThreadStemmer()


@sentence_cache(most=16_384)
def stem(word: str) -> str:
    """Return the stem of a lower-case word with straight apostrophes, without its possessive ending.

    Only good for comparing: a stem need not be a word ('cookies' and 'cookie' give 'cooki'). Words with digits and
    words of other alphabets stay as they are.
    """
    bare = word.removesuffix("'s").removesuffix("'")
    if not bare.isascii() or not bare.isalpha():
        return bare
    stemmed: str = _stemmer.english.stemWord(bare)
    return stemmed
