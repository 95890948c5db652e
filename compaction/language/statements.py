"""Tells which words take the place of earlier ones about the same thing: a corrected code, day, sum or place. Pure.

People rarely say that they correct something, and never what. Two things said are taken to be about the same thing if
the later has what the question asks of the earlier, most of its other words, and another value. A sentence in which
somebody speaks of themselves can be replaced by their own words alone. Figures, days and months are values, never what
a sentence is about.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from compaction.language.languages import LANGUAGES
from compaction.language.terms import name_terms, normalized_words, query_terms
from compaction.language.text import QUESTION_MARKS, sentences

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from compaction.model import TurnPart

# The share of the shorter one's words that both have, and of all words. Corrections of `bench memory` have as many;
# with less, more of what people remember is lost than corrected.
LEAST_SHARED = 0.5
LEAST_OF_ALL = 0.25
_FIRST_PERSON = frozenset(word for each in LANGUAGES for word in each.first_person)
_CALENDAR = frozenset(term for each in LANGUAGES for word in each.calendar for term in name_terms(word))


@dataclass(frozen=True, slots=True)
class Statement:
    """Something that was said, in search terms. `at`: UTC epoch seconds. `names`: the terms of its speakers' names.
    `asked`: those of the question that it answers, which are among its `terms`.
    """

    at: float
    speakers: frozenset[str]
    names: frozenset[str]
    terms: frozenset[str]
    is_personal: bool
    asked: frozenset[str] = frozenset()

    @classmethod
    def of(cls, at: float, said: Iterable[tuple[str, str]], *, answers: Iterable[tuple[str, str]] = ()) -> Statement:
        """Return the statement of these speakers (name and words), which `answers` a question."""
        asked, pairs = list(answers), list(said)
        question = " ".join(words for _, words in asked)
        text = " ".join(words for _, words in (*asked, *pairs))
        pairs = [*asked, *pairs]
        return cls(
            at,
            frozenset(who for who, _ in pairs),
            frozenset(term for who in {who for who, _ in pairs} for term in name_terms(who)),
            frozenset(query_terms(text)),
            not _FIRST_PERSON.isdisjoint(normalized_words(text)),
            frozenset(query_terms(question)),
        )

    def is_repeated(
        self, said: Sequence[tuple[str, str]], reply: Sequence[tuple[str, str]], asked: frozenset[str]
    ) -> bool:
        """Return whether somebody else repeats this, and who said it replies: that it still holds, or holds no more."""
        repeated = frozenset(query_terms(" ".join(words for _, words in said))) & self.terms
        others = self.speakers.isdisjoint(who for who, _ in said)
        return others and self.speakers == {who for who, _ in reply} and bool(repeated & asked and repeated - asked)

    def replaces(self, old: Statement, common: Mapping[str, int]) -> bool:
        """Return whether this, which was said later, holds instead of `old`. `common`: the terms of the question, with
        how many of the passages that were found for it have each.
        """
        asked = common.keys()
        if self.at <= old.at or (old.is_personal and not old.speakers <= self.speakers):
            return False
        new = self.terms - old.terms - asked
        if asked.isdisjoint(old.terms & self.terms) or not new:
            return False
        said = old.terms - asked
        if said and said <= self.asked:
            # 'Still 6 for the table?' 'For 9 now.'
            return True
        # All that is asked: the code of the drawer is not that of the cupboard. Words that more passages have than what
        # both say may be missing: 'Petra takes care of the amp', 'Wei brings the amp'.
        missing = asked & (old.terms | old.names) - self.terms - self.names
        shared = asked & old.terms & self.terms
        if missing and min(map(common.__getitem__, missing)) <= max(map(common.__getitem__, shared)):
            return False
        if _values(said - self.terms):
            if not _values(new):
                return False
            if old.speakers <= self.speakers:
                # Who names another figure or day for it needs no other word of before.
                return True
        # A value that only one has tells nothing. Both have it where somebody asks whether the old one still holds.
        values = _values(old.terms ^ self.terms)
        about, same = old.terms - values, self.terms - values
        both = len(about & same)
        return both >= LEAST_SHARED * min(len(about), len(same)) and both >= LEAST_OF_ALL * len(about | same) > 0


def _values(found: frozenset[str]) -> frozenset[str]:
    """Return the figures, days and months."""
    return _CALENDAR & found | {term for term in found if any(map(str.isdigit, term))}


def spoken(parts: Sequence[TurnPart]) -> list[tuple[str, str]]:
    """Return what each speaker says."""
    return [(part.speaker, part.text) for part in parts]


def told(parts: Sequence[TurnPart]) -> list[tuple[str, str]]:
    """Return what each speaker states, without what they ask."""
    return [
        (part.speaker, sentence)
        for part in parts
        for sentence in sentences(part.text)
        if not sentence.endswith(QUESTION_MARKS)
    ]


def asks(parts: Sequence[TurnPart]) -> bool:
    """Return whether a turn ends with a question."""
    return bool(parts) and parts[-1].text.rstrip().endswith(QUESTION_MARKS)
