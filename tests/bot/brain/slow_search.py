"""Searches for names one by one and word by word: slow, without bounds, and easy to follow.

`bot.brain.name_search` must find the same as long as its bounds leave nothing out.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from bot.brain import name_search
from bot.brain.name_search import MOST_DISTANCE, MOST_DISTANCE_IN_CALL, NamePosition
from bot.brain.phonetics import cost_of_adding, cost_of_confusing, cost_of_losing, phonemes_of

if TYPE_CHECKING:
    from bot.brain.name_search import SpokenName
    from bot.brain.spoken_words import SpokenWords

GREETINGS, DETERMINERS = name_search.GREETINGS, name_search._DETERMINERS
NUMBERS, AFTER_CALL = name_search._NUMBERS, name_search._AFTER_CALL


def find(words: SpokenWords, name: SpokenName) -> list[NamePosition]:
    """Return the places of one name; if several begin at a word, the shortest."""
    found = []
    most = max(name_search.MOST_WORDS, name.words)
    for first in range(len(words)):
        for last in range(first, min(first + most, len(words))):
            if _matches(words, first, last, name):
                found.append(NamePosition(first, last))
                break
    return found


def _matches(words: SpokenWords, first: int, last: int, name: SpokenName) -> bool:
    stretch = words.texts[first : last + 1]
    if any("'" in word for word in stretch[:-1]):
        return False
    determined = first > 0 and words.texts[first - 1] in DETERMINERS and not words.pauses[first - 1]
    if "".join(words.bare[first : last + 1]) == name.joined:
        return first == last or not determined
    if determined or any(words.pauses[first:last]):
        return False
    distance = _distance(tuple(words.bare[first : last + 1]), name)
    if first == last and distance <= MOST_DISTANCE:
        return True
    return distance <= MOST_DISTANCE_IN_CALL and NUMBERS.isdisjoint(stretch) and _stands_as_call(words, first, last)


def _stands_as_call(words: SpokenWords, first: int, last: int) -> bool:
    begins = first == 0 or words.texts[first - 1] in GREETINGS or words.pauses[first - 1]
    ends = last + 1 == len(words) or words.texts[last + 1] in AFTER_CALL or words.pauses[last]
    return begins and ends


def _distance(spoken: tuple[str, ...], name: SpokenName) -> float:
    if spoken == (name.joined + "s",):
        return 0.0
    if len(name.phonemes) < name_search.FEWEST_PHONEMES:
        return inf
    return round(phonetic_distance("".join(phonemes_of(spoken)), name.phonemes), 6) / len(name.phonemes)


def phonetic_distance(heard: str, meant: str) -> float:
    """Return the weighted edit distance of two phoneme strings. 0: same sound; one different consonant adds 1."""
    row = [0.0]
    for sound in meant:
        row.append(row[-1] + cost_of_losing(sound))
    for heard_phoneme in heard:
        above, added = row, cost_of_adding(heard_phoneme)
        row = [above[0] + added]
        for at, meant_phoneme in enumerate(meant):
            replaced = cost_of_confusing(heard_phoneme, meant_phoneme)
            row.append(min(above[at + 1] + added, row[at] + cost_of_losing(meant_phoneme), above[at] + replaced))
    return row[-1]
