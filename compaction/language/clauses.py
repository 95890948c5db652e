"""Cuts what somebody said into statements that can stand alone: whole sentences, or whole clauses of long ones."""

from __future__ import annotations

import re

from compaction.language.languages import language_of
from compaction.language.text import sentences, words

# Clauses shorter than this are joined to the next one: 'and then' says nothing alone.
_LEAST_CHARS = 40
# Where a clause ends whatever the language.
_PAUSE = re.compile(r"(?<=[,;:，、；])\s*|\s+[—–-]\s+")
_FIRST_WORD = re.compile(r"[\s,.…]*([^\W_]+(?:['’][^\W_]+)*)([\s,.…]*)")


def statements(text: str, max_chars: int) -> list[str]:
    """Return the sentences of a text without their preambles. One longer than `max_chars` is cut into whole clauses.

    A clause that is too long as well is left out, because half a clause may say something else.
    """
    found: list[str] = []
    for sentence in sentences(text):
        bare = without_preamble(sentence)
        found += [bare] if len(bare) <= max_chars else _clauses(bare, max_chars)
    return found


def without_preamble(sentence: str) -> str:
    """Return a sentence from its first word that says something: 'Right, um, we leave' is 'We leave'."""
    language = language_of(words(sentence))
    begin = 0
    while (match := _FIRST_WORD.match(sentence, begin)) is not None and match.end() < len(sentence):
        word = match[1].casefold()
        if word not in language.fillers and not (word in language.openers and "," in match[2]):
            break
        begin = match.end()
    rest = sentence[begin:]
    return rest[:1].upper() + rest[1:] if begin else sentence


def _clauses(sentence: str, max_chars: int) -> list[str]:
    language = language_of(words(sentence[: 2 * max_chars]))
    pieces: list[list[str]] = []
    for part in _PAUSE.split(sentence):
        pieces.append([])
        for word in part.split():
            if word.casefold() in language.joints and pieces[-1]:
                pieces.append([])
            pieces[-1].append(word)
    found: list[str] = []
    clause = ""
    for piece in (" ".join(each) for each in pieces):
        if clause and (len(clause) >= _LEAST_CHARS or len(clause) + len(piece) >= max_chars):
            found.append(clause)
            clause = piece
        else:
            clause = f"{clause} {piece}".strip()
    found.append(clause)
    return [_without_joint(each, language.joints) for each in found if each and len(each) < max_chars]


def _without_joint(clause: str, joints: frozenset[str]) -> str:
    first, _, rest = clause.partition(" ")
    bare = rest if rest and first.casefold() in joints else clause
    return bare[:1].upper() + bare[1:]
