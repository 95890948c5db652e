"""Replaces numbers and signs by words: '5 %' becomes '5 percent', and '21:04' is read as a time. Pure.

Voices differ in how they read signs, so they get words instead. Digits remain, because every voice can read numbers.
The words are English (`english_symbols`), like the voice that comes with Roomtone, or German (`german_symbols`).
"""

from __future__ import annotations

import re
import unicodedata

from voice.speaking import english_symbols, german_symbols

# Some voices would spell out the remaining signs or fail on them.
_SILENT_SIGNS = frozenset("*_`~|<>{}[]^\\#=+@/&%$€£¥°")
_SILENT_CATEGORIES = frozenset({"So", "Sk", "Sm", "Sc", "Cc", "Cf", "Cn", "Co", "Cs"})
_SPACE_BEFORE_STOP = re.compile(r"\s+([,.;:!?…]+)(?=\s|$)")


def expand_symbols(text: str, language: str = "") -> str:
    """Return `text` with signs replaced by words. Signs without a word are removed.

    `language`: the code of the language in which it is read. The words are English in any but German.
    """
    for pattern, words in german_symbols.RULES if language == "de" else english_symbols.RULES:
        text = pattern.sub(words, text)
    speakable = "".join(" " if _is_silent(letter) else letter for letter in text)
    return _SPACE_BEFORE_STOP.sub(r"\1", " ".join(speakable.split()))


def _is_silent(letter: str) -> bool:
    return letter in _SILENT_SIGNS or unicodedata.category(letter) in _SILENT_CATEGORIES
