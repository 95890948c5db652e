"""How words sound, roughly, and how far two sounds are apart. Pure.

Made for telling a mis-heard name from another word: spelling is reduced to classes of sounds, one letter each, and
what recognisers swap (m and n, t and d, one vowel and its neighbour) is near, what they tell apart is far. English
spelling, with what other languages that are written alike share with it.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

_VOWELS = frozenset("AEIOU")
# What is spelt with several letters, and what is not heard. In order; capitals are sounds that are settled.
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
        # A last e lengthens and is not heard: 'tone', 'Rome'.
        (r"(?<=[^aeiouyA-Z])e(?=s?$)", ""),
        (r"(?<=[aeiouAEIOU])h", ""),
        (r"d(?=t)|t(?=d)", ""),
        # Between m and t lips make a sound that nobody means: 'rumpton'.
        (r"(?<=m)[pb](?=t)", ""),
        (r"a", "A"),
        (r"e", "E"),
        (r"i|y(?![aeiouAEIOU])", "I"),
        (r"o", "O"),
        (r"u", "U"),
        (r"(.)\1+", r"\1"),
    )
)
# How unlike two sounds are, of 1; a pair that is not here is as unlike as can be.
_APART = {
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
# What a sound costs that one has more than the other: breath and glides are lost easily. A vowel is slurred in between
# more easily than it is swallowed ('Alex' is not 'Alexa').
_MORE = {"h": 0.2, "w": 0.3, "y": 0.3, "s": 0.6, "r": 0.6, "l": 0.6}
_MORE_CONSONANT = 0.8
_ADDED_VOWEL = 0.35
_LOST_VOWEL = 1.0


@lru_cache(maxsize=4096)
def to_phonemes(word: str) -> str:
    """Return the sounds of one word, a letter each; empty for what is not written in Latin letters."""
    plain = unicodedata.normalize("NFKD", word.casefold())
    for pattern, sound in _SPELLINGS:
        plain = pattern.sub(sound, plain)
    return plain


def phonetic_distance(heard: str, meant: str) -> float:
    """Return how far the sounds heard are from those meant: 0 is alike, and a wholly other consonant is 1."""
    row = [0.0]
    for sound in meant:
        row.append(row[-1] + _more(sound, _LOST_VOWEL))
    for mine in heard:
        above, added = row, _more(mine, _ADDED_VOWEL)
        row = [above[0] + added]
        for at, theirs in enumerate(meant):
            unlike = 0.0 if mine == theirs else _APART.get(frozenset((mine, theirs)), 1.0)
            row.append(min(above[at + 1] + added, row[at] + _more(theirs, _LOST_VOWEL), above[at] + unlike))
    return row[-1]


def _more(sound: str, vowel: float) -> float:
    return vowel if sound in _VOWELS else _MORE.get(sound, _MORE_CONSONANT)
