"""Approximate phonemes of written words, and what it costs to confuse two of them. Pure.

It tells a misheard name from another word. Spelling is reduced to classes of phonemes, one letter each. Phonemes that
recognisers confuse (m and n, t and d, neighbouring vowels) have a small distance, others a large one. The rules are for
English; other languages in Latin letters work as far as their spelling is similar.
"""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_VOWELS = frozenset("AEIOU")
# Spelling rules, applied in order to words in lines of their own. Capitals are phonemes that no later rule changes.
# Letters alone are replaced as they are, which is faster.
_SPELLINGS = tuple(
    (pattern if pattern.isalpha() else re.compile(pattern, re.MULTILINE), sound)
    for pattern, sound in (
        (r"[^a-z\n]", ""),
        (r"^[kgp]n", "n"),
        (r"^wr|^rh", "r"),
        ("tch", "J"), ("ch", "J"), ("dge", "J"),
        ("sch", "S"), ("sh", "S"),
        (r"ph|gh$", "f"),
        ("gh", ""),
        ("th", "T"),
        ("ck", "k"),
        ("qu", "kw"),
        ("x", "ks"),
        (r"ng(?![aeiouy])", "N"),
        (r"c(?=[eiy])", "s"),
        ("c", "k"), ("q", "k"),
        (r"g(?=[ei])|j", "J"),
        # 'Room' and 'roof', 'soup', 'blue', 'new'.
        (r"oo|ou(?=p)|ue|ew|ui", "U"),
        ("oa", "O"), ("ow", "O"), ("ou", "O"), ("oe", "O"),
        (r"ee|ea|ie|ey", "I"),
        ("ai", "E"), ("ay", "E"), ("ei", "E"),
        ("au", "A"), ("aw", "A"),
        # A final e is silent: 'tone', 'Rome'.
        (r"(?<=[^aeiouyA-Z\n])e(?=s?$)", ""),
        (r"(?<=[aeiouAEIOU])h", ""),
        (r"d(?=t)|t(?=d)", ""),
        # The p or b that slips in between m and t: 'rumpton'.
        (r"(?<=m)[pb](?=t)", ""),
        ("a", "A"),
        ("e", "E"),
        (r"i|y(?![aeiouAEIOU])", "I"),
        ("o", "O"),
        ("u", "U"),
        (r"(.)\1+", r"\1"),
    )
)  # fmt: skip
# Distance of two phonemes, 0 to 1. Pairs that are not listed have distance 1.
_DISTANCES = {
    frozenset(pair): distance
    for distance, pairs in (
        (0.2, ("sz",)),
        (0.25, ("OU", "fv")),
        (0.3, ("EI", "sS", "SJ", "kg", "pb", "nN", "Tf")),
        (0.35, ("mn", "td")),
        (0.4, ("OA", "AE", "AU", "rw", "wv", "bv", "Tt", "Td", "Ts", "zJ")),
        (0.5, ("UI", "mN", "rl")),
        (0.6, ("OE", "UE", "AI", "OI", "kt")),
    )
    for pair in pairs
}
# Cost of a phoneme that only one string has. Breath and glides are easily lost. A vowel is added more easily than it is
# lost ('Alex' is not 'Alexa').
_CONSONANTS = {"h": 0.2, "w": 0.3, "y": 0.3, "s": 0.6, "r": 0.6, "l": 0.6}
_OTHER_CONSONANT = 0.8
_ADDED_VOWEL = 0.35
_LOST_VOWEL = 1.0


def phonemes_of(words: Sequence[str]) -> list[str]:
    """Return the phonemes of each word, a letter each; empty for a word that is not in Latin letters.

    A word has no white space. Much faster for many words at once than for one after the other.
    """
    if not words:
        return []
    plain = unicodedata.normalize("NFKD", "\n".join(words).casefold())
    for pattern, sound in _SPELLINGS:
        plain = plain.replace(pattern, sound) if isinstance(pattern, str) else pattern.sub(sound, plain)
    return plain.split("\n")


def cost_of_confusing(heard: str, meant: str) -> float:
    """Return the cost of writing one phoneme for another: 0 for the same, 1 for two that nobody confuses."""
    return 0.0 if heard == meant else _DISTANCES.get(frozenset((heard, meant)), 1.0)


def cost_of_adding(phoneme: str) -> float:
    """Return the cost of writing a phoneme that was not said."""
    return _ADDED_VOWEL if phoneme in _VOWELS else _CONSONANTS.get(phoneme, _OTHER_CONSONANT)


def cost_of_losing(phoneme: str) -> float:
    """Return the cost of leaving out a phoneme that was said."""
    return _LOST_VOWEL if phoneme in _VOWELS else _CONSONANTS.get(phoneme, _OTHER_CONSONANT)
