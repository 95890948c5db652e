"""Approximate phonemes of written words, and the distance between two phoneme strings. Pure.

It tells a misheard name from another word. Spelling is reduced to classes of phonemes, one letter each. Phonemes that
recognisers confuse (m and n, t and d, neighbouring vowels) have a small distance, others a large one. The rules are for
English; other languages in Latin letters work as far as their spelling is similar.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

_VOWELS = frozenset("AEIOU")
# Spelling rules, applied in order. Capitals are phonemes that no later rule changes.
_SPELLINGS = tuple(
    (re.compile(pattern), sound)
    for pattern, sound in (
        (r"[^a-z]", ""),
        (r"^[kgp]n", "n"),
        (r"^wr|^rh", "r"),
        (r"tch|ch|dge", "J"),
        (r"sch|sh", "S"),
        (r"ph|gh$", "f"),
        (r"gh", ""),
        (r"th", "T"),
        (r"ck", "k"),
        (r"qu", "kw"),
        (r"x", "ks"),
        (r"ng(?![aeiouy])", "N"),
        (r"c(?=[eiy])", "s"),
        (r"[cq]", "k"),
        (r"g(?=[ei])|j", "J"),
        # 'Room' and 'roof', 'soup', 'blue', 'new'.
        (r"oo|ou(?=p)|ue|ew|ui", "U"),
        (r"oa|ow|ou|oe", "O"),
        (r"ee|ea|ie|ey", "I"),
        (r"ai|ay|ei", "E"),
        (r"au|aw", "A"),
        # A final e is silent: 'tone', 'Rome'.
        (r"(?<=[^aeiouyA-Z])e(?=s?$)", ""),
        (r"(?<=[aeiouAEIOU])h", ""),
        (r"d(?=t)|t(?=d)", ""),
        # The p or b that slips in between m and t: 'rumpton'.
        (r"(?<=m)[pb](?=t)", ""),
        (r"a", "A"),
        (r"e", "E"),
        (r"i|y(?![aeiouAEIOU])", "I"),
        (r"o", "O"),
        (r"u", "U"),
        (r"(.)\1+", r"\1"),
    )
)
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
_INSERTION = {"h": 0.2, "w": 0.3, "y": 0.3, "s": 0.6, "r": 0.6, "l": 0.6}
_OTHER_CONSONANT = 0.8
_ADDED_VOWEL = 0.35
_LOST_VOWEL = 1.0


@lru_cache(maxsize=4096)
def to_phonemes(word: str) -> str:
    """Return the phonemes of one word, a letter each; empty for a word that is not in Latin letters."""
    plain = unicodedata.normalize("NFKD", word.casefold())
    for pattern, sound in _SPELLINGS:
        plain = pattern.sub(sound, plain)
    return plain


def phonetic_distance(heard: str, meant: str) -> float:
    """Return the weighted edit distance of two phoneme strings. 0: same sound; one different consonant adds 1."""
    row = [0.0]
    for sound in meant:
        row.append(row[-1] + _insertion_cost(sound, _LOST_VOWEL))
    for heard_phoneme in heard:
        above, added = row, _insertion_cost(heard_phoneme, _ADDED_VOWEL)
        row = [above[0] + added]
        for at, meant_phoneme in enumerate(meant):
            pair = frozenset((heard_phoneme, meant_phoneme))
            replaced = 0.0 if len(pair) == 1 else _DISTANCES.get(pair, 1.0)
            row.append(
                min(above[at + 1] + added, row[at] + _insertion_cost(meant_phoneme, _LOST_VOWEL), above[at] + replaced)
            )
    return row[-1]


def _insertion_cost(sound: str, vowel: float) -> float:
    return vowel if sound in _VOWELS else _INSERTION.get(sound, _OTHER_CONSONANT)
