"""Answers that begin with a no: 'Leaving for Oslo on the 3rd?' 'No, the 9th now.' corrects who said the 3rd before."""

from __future__ import annotations

from typing import TYPE_CHECKING

from compaction.language.meaning import meaning

if TYPE_CHECKING:
    from compaction.language.meaning import Meaning

# 'No, ' or 'Not any more, ' ends within so many characters.
_OPENING_CHARS = 40
# A question with the value of an old statement is about the same thing if they share a name, or this much of what they
# speak of.
_SAME_THING = 0.75


def says_no(text: str) -> bool:
    """Return whether a text begins with 'No,' or 'Not any more,': 'No idea,' and 'No way,' deny nothing."""
    opening, comma, _ = text[:_OPENING_CHARS].partition(",")
    if not comma:
        return False
    told = meaning(opening)
    return told.negated and not told.about and (told.announces or len(opening.split()) == 1)


def denies(answer: Meaning, asked: Meaning, old: Meaning) -> bool:
    """Return whether an answer that says no gives another value, of a like kind, for what its question has from `old`.

    'Leaving for Oslo on the 3rd?' is about the journey of 'We booked the train to Oslo for the 3rd': it has that name
    and that value.
    """
    value = answer.values
    if not may_be_about(asked, old) or asked.values <= value:
        return False
    if not {each.isalpha() for each in value} & {each.isalpha() for each in asked.values}:
        return False
    shared = len(asked.topics & old.topics) / max(1, min(len(asked.topics), len(old.topics)))
    return shared >= _SAME_THING or not asked.names.isdisjoint(old.names)


def may_be_about(asked: Meaning, told: Meaning) -> bool:
    """Return whether a question may be about a statement: it names no other value, and nobody else."""
    others = asked.names and told.names and asked.names.isdisjoint(told.names)
    return asked.values <= told.values and not others
