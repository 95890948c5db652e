"""Tells which words take the place of earlier ones about the same thing: a corrected code, day, sum or place. Pure.

People rarely say that they correct something, and never what. What led to their words does: the question that they
answer, or what was said before a bare value. So a statement carries the terms of what it replies to, and follows an
earlier one if it tells something else about the same. That may be more about it, or hold instead of it. What people say
of themselves is followed by their own words alone, or by those that name them. Figures, days and months are values.
"""

from __future__ import annotations

from dataclasses import dataclass

from compaction.language.languages import LANGUAGES
from compaction.language.terms import name_terms, normalized_words, query_terms
from compaction.language.text import is_question

_FIRST_PERSON = frozenset(word for each in LANGUAGES for word in each.first_person)
_CALENDAR = frozenset(term for each in LANGUAGES for word in each.calendar for term in name_terms(word))


@dataclass(frozen=True, slots=True)
class Statement:
    """A sentence that somebody said, in search terms. `at`: UTC epoch seconds. `names`: the terms of the speaker's
    name. `words`: its own terms. `led_by`: those of what it `replies` to, which it is about, too.
    """

    at: float
    speaker: str
    names: frozenset[str]
    words: frozenset[str]
    led_by: frozenset[str]
    asks: bool
    replies: bool
    is_personal: bool

    @classmethod
    def of(cls, at: float, speaker: str, sentence: str, before: Statement | None = None) -> Statement:
        """Return the statement of a sentence. `before`: what was said just before it."""
        words = frozenset(query_terms(sentence))
        answers = before is not None and before.asks and before.speaker != speaker
        asks = is_question(sentence)
        # A bare value, or one with another word in reply to somebody's: 'I tried 8143.' 'That is dead, 6612 now.'
        to_value = (
            before is not None and before.speaker != speaker and bool(values_in(before.words) and values_in(words))
        )
        replies = before is not None and (answers or len(words - values_in(words)) <= (asks or to_value))
        return cls(
            at,
            speaker,
            frozenset(name_terms(speaker)),
            words,
            before.carried if before is not None and replies else frozenset(),
            asks,
            replies,
            speaks_of_self(sentence),
        )

    @property
    def about(self) -> frozenset[str]:
        """Return the terms of all that it is about."""
        return self.words | self.names | self.led_by

    @property
    def carried(self) -> frozenset[str]:
        """Return the terms that a reply takes from it: its own, and of a question what that is about."""
        own = self.words | self.names
        return own | self.led_by if self.asks or not self.words else own

    def follows(self, old: Statement, query: frozenset[str]) -> bool:
        """Return whether this tells something later about the same as `old`: about half of what is asked of that, or in
        reply to its words. `query`: the terms of the question.
        """
        is_theirs = old.speaker == self.speaker or old.names <= self.about
        if self.asks or self.at <= old.at or (old.is_personal and not is_theirs):
            return False
        matter = old.about & query
        is_new = bool(self.words - old.words - query) and not old.words.isdisjoint(self.about)
        return is_new and (self._repeats(old, query) or 2 * len(matter & self.about) >= len(matter) > 0)

    def replaces(self, old: Statement, query: frozenset[str]) -> bool:
        """Return whether `old`, which this follows, holds no longer: this is about all that is asked of it, and it has
        little else than another value.
        """
        if self._repeats(old, query) and old.words - query <= self.led_by:
            return True
        lost = old.words - query - self.words
        if not old.about & query <= self.about:
            return False
        if values_in(lost):
            return bool(values_in(self.words - old.words - query))
        shared = old.words & self.about
        return len(lost) <= len(shared) and len(old.words | self.words) <= 4 * len(shared)

    def _repeats(self, old: Statement, query: frozenset[str]) -> bool:
        """Return whether this replies to words of `old`: 'Still 6 for the table?' 'For 9 now.'"""
        return not (self.led_by.isdisjoint(old.words & query) or self.led_by.isdisjoint(old.words - query))


def values_in(found: frozenset[str]) -> frozenset[str]:
    """Return the figures, days and months."""
    return _CALENDAR & found | {term for term in found if any(map(str.isdigit, term))}


def speaks_of_self(sentence: str) -> bool:
    """Return whether somebody says 'I' or 'my' in a sentence."""
    return not _FIRST_PERSON.isdisjoint(normalized_words(sentence))
