"""Writes the names of the people present as they write them, where a recogniser wrote what sounds alike. Pure.

A word is taken for a name only where it can be nothing else: it has a capital within a sentence of which the recogniser
was unsure, or is called out before a comma, it is no common word of a known language, and it sounds like the name of
one person alone. So what somebody says about a name stays: 'half the people call you Senya'. What a name sounds like is
compared roughly, as languages spell it differently: `Senya` is Ksenia, `Yoris` is Joris.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from compaction.language.languages import LANGUAGES, language_of
from compaction.language.terms import plain_words
from compaction.language.text import words
from compaction.sentence_cache import sentence_cache

if TYPE_CHECKING:
    from collections.abc import Sequence

# One consonant, or two vowels.
MOST_DIFFERENCE = 1.0
_COMMON = frozenset(
    each for language in LANGUAGES for word in language.vocabulary | language.calendar for each in plain_words(word)
)
# Shorter names sound like too many words.
_NAME = re.compile(r"[^\W\d_]{3,}")
# A word after one of these begins a sentence.
_BEGINS = re.compile(r"(?:^|[.!?…:]['\"”’)]*)\s*['\"“„‘(¿¡-]*\s*$")
# How spellings of different languages stand for one sound, tried in this order. Vowels are compared roughly anyway.
_SPELLINGS = (
    *(("ie", "i"), ("ee", "i"), ("ey", "i"), ("ea", "i"), ("oo", "u"), ("ou", "u"), ("au", "o")),
    *(("sch", "s"), ("tch", "s"), ("sh", "s"), ("cz", "s"), ("sz", "s"), ("ck", "k"), ("ph", "f"), ("ch", "*")),
    *(("bh", "v"), ("th", "t"), ("dh", "d"), ("gh", "g"), ("qu", "k"), ("x", "ks"), ("ce", "se"), ("ci", "si")),
    *(("cy", "si"), ("c", "k"), ("*", "c"), ("q", "k"), ("z", "s"), ("w", "v"), ("j", "i"), ("y", "i"), ("h", "")),
)
_REPEATED = re.compile(r"(.)\1+")
# Sounds that differ in voice alone.
_NEAR = frozenset(map(frozenset, ("bp", "dt", "gk", "vf", "ck", "cs")))


def correct_names(text: str, names: Sequence[str], *, unsure: bool) -> str:
    """Return the text with misheard names of `names` (those of the people present, as they write them) put right.

    `unsure`: whether the recogniser was unsure of the text. If not, only who is called is misheard.
    """
    wanted = {word: _sound(word) for name in names for word in _NAME.findall(name)}
    # 'Sams' may be Sam's.
    known = {form for word in wanted for form in (word.casefold(), f"{word.casefold()}s")}
    # Where each noun has a capital, it tells nothing.
    most = 0.0 if wanted and language_of(words(text)).has_capital_nouns else MOST_DIFFERENCE

    def corrected(found: re.Match[str]) -> str:
        word = found.group()
        if word.casefold() in known or not _may_be_name(word, text, found, unsure=unsure):
            return word
        alike = [name for name, sound in wanted.items() if sounds_like(_sound(word), sound, most=most)]
        return alike[0] if len(alike) == 1 else word

    return _NAME.sub(corrected, text) if wanted else text


def _may_be_name(word: str, text: str, found: re.Match[str], *, unsure: bool) -> bool:
    if not word[0].isupper() or word[1:] != word[1:].lower() or not _COMMON.isdisjoint(plain_words(word)):
        return False
    before = text[: found.start()]
    if before[-1:] in {"'", "’"}:
        return False  # the rest of a word, as in 'Kay
    begins = _BEGINS.search(before) is not None
    return text[found.end() :].startswith(",") if begins else unsure


@sentence_cache(most=512)
def _sound(word: str) -> str:
    """Return roughly how a word sounds, in the letters a to z."""
    sound = "".join(plain_words(word))
    for spelling, letters in _SPELLINGS:
        sound = sound.replace(spelling, letters)
    sound = sound.removeprefix("k") if sound.startswith("ks") else sound
    return _REPEATED.sub(r"\1", sound)


def sounds_like(one: str, other: str, *, most: float = MOST_DIFFERENCE) -> bool:
    """Return whether two sounds are alike: the longer they are, the more they may differ, mostly in vowels.

    `most`: the largest difference, where a vowel counts half.
    """
    length = min(len(one), len(other))
    allowed = 0.0 if length < 5 else 0.5 if length < 8 else MOST_DIFFERENCE
    return one[:1] == other[:1] and _distance(one, other) <= min(most, allowed)


def _distance(one: str, other: str) -> float:
    """Return the edit distance. Vowels, and voice, count half."""
    before = [0.0]
    for letter in other:
        before.append(before[-1] + _cost(letter))
    for letter in one:
        row = [before[0] + _cost(letter)]
        for at, also in enumerate(other):
            row.append(min(before[at + 1] + _cost(letter), row[-1] + _cost(also), before[at] + _changed(letter, also)))
        before = row
    return before[-1]


def _cost(letter: str) -> float:
    return 0.5 if letter in "ei" else 1.0


def _changed(one: str, other: str) -> float:
    if one == other:
        return 0.0
    both_vowels = one in "aeiou" and other in "aeiou"
    return 0.5 if both_vowels or frozenset((one, other)) in _NEAR else 1.0
