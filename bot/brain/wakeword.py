"""Whether some words call the bot by its name, mis-hearings counted in. Pure.

A recogniser writes an unusual name as what it sounds like: 'Roomtone' comes out as 'room tone', 'Rumtone' or
'Rome tone'. Two words are taken for the same name when they are a letter apart, or when they share the skeleton
of their consonants and differ little otherwise.
"""

from __future__ import annotations

import re
from functools import lru_cache

_WORD = re.compile(r"[^\W_]+")
# Sounds that recognisers swap: they count as one in the skeleton.
_ALIKE = str.maketrans({"m": "n", "d": "t", "b": "p", "k": "c", "q": "c", "z": "s", "g": "c", "v": "f"})
_SILENT = frozenset("aeiouyhw")
_GREETINGS = frozenset({"hey", "hi", "hello", "ok", "okay", "so", "and", "but", "well", "oh"})
# A name is heard as at most this many words.
MOST_WORDS = 3
# Shorter names have too few sounds to tell a mis-hearing from another word ('Ada', 'Otto').
SHORTEST_FUZZY = 6


def is_addressed(text: str, wake_names: tuple[str, ...]) -> bool:
    """Return whether `text` says one of `wake_names`, exactly or nearly."""
    words = [word.casefold() for word in _WORD.findall(text)]
    names = {_joined(name) for name in wake_names}
    names.discard("")
    spoken = (
        "".join(words[at : at + length]) for length in range(1, MOST_WORDS + 1) for at in range(len(words) - length + 1)
    )
    return any(_same_name(heard, name) for heard in spoken for name in names)


def without_call(text: str, wake_names: tuple[str, ...]) -> str:
    """Return `text` without the name it begins with ('Hey Roomtone, who …' becomes 'who …'), if it does."""
    names = {_joined(name) for name in wake_names} - {""}
    words = list(_WORD.finditer(text))
    for begin in range(min(2, len(words))):
        if begin and words[0].group().casefold() not in _GREETINGS:
            break
        # Shortest first: a longer stretch would swallow words whose sounds do not count.
        for length in range(1, MOST_WORDS + 1):
            called = words[begin : begin + length]
            if len(called) == length and any(
                _same_name("".join(word.group().casefold() for word in called), name) for name in names
            ):
                return text[called[-1].end() :].lstrip(" ,.;:!?…-–—")
    return text


def _joined(name: str) -> str:
    return "".join(word.casefold() for word in _WORD.findall(name))


@lru_cache(maxsize=4096)
def _same_name(heard: str, name: str) -> bool:
    if heard == name or heard == name + "s":  # 'Roomtone's opinion' loses its apostrophe
        return True
    if len(name) < SHORTEST_FUZZY or heard[:1] != name[:1]:
        return False
    apart = _distance(heard, name)
    # A letter more or other is a slip of spelling; a letter less makes words of their own ('room one').
    if apart == 1 and len(heard) >= len(name):
        return True
    return apart <= 3 * len(name) // 8 and _skeleton(heard) == _skeleton(name)


def _skeleton(word: str) -> str:
    """Return the consonants of `word`, similar ones made one, doubles joined."""
    sounds = [sound for sound in word.translate(_ALIKE) if sound not in _SILENT]
    return "".join(sound for at, sound in enumerate(sounds) if at == 0 or sounds[at - 1] != sound)


def _distance(left: str, right: str) -> int:
    """Return the Levenshtein distance of two short words."""
    row = list(range(len(right) + 1))
    for at, letter in enumerate(left, start=1):
        above = row
        row = [at]
        for to, other in enumerate(right, start=1):
            row.append(min(above[to] + 1, row[to - 1] + 1, above[to - 1] + (letter != other)))
    return row[-1]
