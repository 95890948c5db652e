"""Whether a summariser's words stand on what was said: every name and every number in them must have a source.

A source is the cited turns, the notes, the roster, and the summary so far. Names are compared without endings,
numbers as digits whichever way they are written. It doesn't judge meaning: who said a thing and when is taken
from the turn itself and never from the model, which gets speakers wrong even where turn numbers are right.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from compaction.language.wording import base, figures, names, plain, words

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from compaction.model import Turn, TurnPart

# What may stand between a speaker's name and what was said.
_SAYS = re.compile(
    r"^(?:\s*[:,–—-]\s*|\s+(?:said|says|mentioned|stated|noted|added|told (?:us|them|everyone))"
    r"(?:\s+that\b|\s*[:,])?\s*)"
)


@dataclass(frozen=True, slots=True)
class Ground:
    """Words (without endings) and numbers that may be used."""

    words: frozenset[str]
    figures: frozenset[str]

    def __or__(self, other: Ground) -> Ground:
        """Return both grounds together."""
        return Ground(self.words | other.words, self.figures | other.figures)


def ground_of(texts: Iterable[str]) -> Ground:
    """Return what these texts allow to be said."""
    joined = " \n".join(texts)
    return Ground(frozenset(base(word) for word in words(joined)), figures(joined, small=True))


def turn_ground(turns: Iterable[Turn]) -> Ground:
    """Return what these turns allow to be said, their speakers' names included."""
    return ground_of(text for turn in turns for part in turn.parts for text in (part.speaker, part.text))


def ungrounded(text: str, ground: Ground) -> frozenset[str]:
    """Return the names and numbers of a text that have no source; an empty set is a good text."""
    # A small number word ('one of them') is a manner of speaking; as a digit it is a number.
    return (names(text) - ground.words) | (figures(text) - ground.figures)


def best_matching_part(text: str, turn: Turn) -> TurnPart | None:
    """Return the part of the turn that a fact is from: the one that shares most of its words (the first of equal
    ones); None in a turn without words."""
    about = {base(word) for word in words(text)}
    shared = [(len(about & {base(word) for word in words(part.text)}), -index) for index, part in enumerate(turn.parts)]
    return turn.parts[-max(shared)[1]] if shared else None


def strip_speaker(text: str, part: TurnPart, roster: Collection[str]) -> str | None:
    """Return a fact's text without the name of its speaker in front, or None when it puts the words into the mouth
    of somebody who neither said them nor is spoken of in them."""
    text = plain(text)
    own = _after_name(text, part.speaker)
    if own is not None:
        return own[:1].upper() + own[1:]
    said = {base(word) for word in words(part.text)}
    for name in roster:
        if name == part.speaker or _after_name(text, name) is None:
            continue
        if not said.intersection(base(word) for word in words(name)):
            return None
    return text


def _after_name(text: str, name: str) -> str | None:
    """Return what follows a name (and 'said that') at the start of a text, or None when it starts otherwise."""
    plain_name = plain(name)
    if not plain_name or not text.casefold().startswith(plain_name.casefold()):
        return None
    rest = text[len(plain_name) :]
    if rest[:1].isalnum():
        return None
    said = _SAYS.match(rest)
    return (rest[said.end() :] if said is not None else rest).strip()
