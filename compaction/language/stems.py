"""The stemmer: returns what the forms of an English word have in common, for example 'visit' for 'visited' and
'visits'.

The search index stores stems (`terms`). `STEMMER_VERSION` is therefore used to tell whether a stored index is current.
"""

from __future__ import annotations

import threading
from importlib.metadata import version

# Don't use `snowballstemmer.stemmer()`: it prefers PyStemmer if that is installed, and PyStemmer's stems may differ.
from snowballstemmer.english_stemmer import EnglishStemmer

from compaction.language.sentence_cache import sentence_cache

STEMMER_VERSION = version("snowballstemmer")


class _ThreadStemmer(threading.local):
    """Holds one Snowball stemmer per thread, because a stemmer object stores the word it is working on."""

    def __init__(self) -> None:
        self.english = EnglishStemmer()


_stemmer = _ThreadStemmer()


@sentence_cache(most=16_384)
def stem(word: str) -> str:
    """Return the stem of a lower-case word with straight apostrophes, without its possessive ending.

    Stems are only for comparing and need not be words ('cookies' and 'cookie' give 'cooki'). Words with digits and
    words in other alphabets are not stemmed.
    """
    bare = word.removesuffix("'s").removesuffix("'")
    if not bare.isascii() or not bare.isalpha():
        return bare
    stemmed: str = _stemmer.english.stemWord(bare)
    return stemmed
