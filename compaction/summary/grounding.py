"""Checks that every name and every number in a model's text has a source.

Sources are the cited turns, the notes, the roster and the summary so far. Names are compared in their base form, and
numbers as digits however they are written. The meaning is not checked. The speaker and the time of a statement are
taken from the turn and never from the model, because models get speakers wrong even with correct turn numbers.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from compaction.language.wording import base, figures, names, plain, words

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from compaction.model import Turn, TurnPart

# Matches what may stand between a speaker's name and the statement.
_SAYS = re.compile(
    r"^(?:\s*[:,–—-]\s*|\s+(?:said|says|mentioned|stated|noted|added|told (?:us|them|everyone))"
    r"(?:\s+that\b|\s*[:,])?\s*)"
)


@dataclass(frozen=True, slots=True)
class Ground:
    """The words (in base form) and the numbers that have a source, so a text may use them."""

    words: frozenset[str]
    figures: frozenset[str]

    def __or__(self, other: Ground) -> Ground:
        """Return the words and numbers of both grounds."""
        return Ground(self.words | other.words, self.figures | other.figures)


def ground_of(texts: Iterable[str]) -> Ground:
    joined = " \n".join(texts)
    return Ground(frozenset(base(word) for word in words(joined)), figures(joined, small=True))


def turn_ground(turns: Iterable[Turn]) -> Ground:
    """Return the words and numbers of these turns, including their speakers' names."""
    return ground_of(text for turn in turns for part in turn.parts for text in (part.speaker, part.text))


def ungrounded(text: str, ground: Ground) -> frozenset[str]:
    """Return the names and numbers of a text that have no source. The result is empty for a good text."""
    # Small number words are not checked, because in 'one of them' the word is not a number. Digits are checked.
    return (names(text) - ground.words) | (figures(text) - ground.figures)


def best_matching_part(text: str, turn: Turn) -> TurnPart | None:
    """Return the part of the turn that shares most words with a fact, or None if the turn has no parts.

    Among equal parts, the first is returned.
    """
    about = {base(word) for word in words(text)}
    shared = [(len(about & {base(word) for word in words(part.text)}), -index) for index, part in enumerate(turn.parts)]
    return turn.parts[-max(shared)[1]] if shared else None


def strip_speaker(text: str, part: TurnPart, roster: Collection[str]) -> str | None:
    """Return a fact's text without the speaker's name at its beginning.

    Returns None if the text begins with the name of another person whom the speaker did not mention.
    """
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
    """Return the text after a name (and 'said that') at its beginning, or None if it does not begin with the name."""
    plain_name = plain(name)
    if not plain_name or not text.casefold().startswith(plain_name.casefold()):
        return None
    rest = text[len(plain_name) :]
    if rest[:1].isalnum():
        return None
    said = _SAYS.match(rest)
    return (rest[said.end() :] if said is not None else rest).strip()
