"""Elliptical corrections, which don't say what they correct: 'No, Sunday now', 'Actually, make that nine'. Pure.

`find_reference` finds the sentence that a correction is about: the nearest question or statement of the last few turns
with a value that the correction can replace. It is cautious about numbers, because they are frequent. English.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from compaction.language.languages import stem
from compaction.language.lexicon import AROUND_A_FACT, CALENDAR, OTHERWISE, SUBJECTLESS, TAKING_BACK
from compaction.language.values import Kind, Value, is_hour, of_kind, same_value, values, without_times
from compaction.language.wording import (
    answers_barely,
    asks,
    change_words,
    concepts,
    durability,
    is_passing,
    names,
    words,
)
from compaction.sentence_cache import sentence_cache

if TYPE_CHECKING:
    from collections.abc import Sequence

# A correction may refer to a sentence up to this many turns before it.
REACH_TURNS = 8
# A question may be answered within this many sentences.
_QUESTION_SENTENCES = 3
# If a speaker corrects their own sentence within this many turns, the sentence need not state anything lasting.
_BESIDE_TURNS = 2
_YES_OR_NO = re.compile(r"^(?:yes|yeah|yep|no|nope|nah|not any ?more|exactly|right|correct)\b", re.IGNORECASE)
_NO_SUBJECT = frozenset(stem(word) for word in SUBJECTLESS | AROUND_A_FACT)
_CLAUSE = re.compile(r"[,;!?…—–]\s*|[.:](?=\s|$)\s*|\s(?:because|since|as|cause|cos|but)\s")
_DENIED = re.compile(r"\b(?:not|instead of|rather than)\s+(?!any)[^,;.!?]+", re.IGNORECASE)
_ASKED_KINDS = (
    (
        re.compile(r"\b(?:when|what (?:time|day|date)|which (?:day|date)|how (?:late|early))\b", re.IGNORECASE),
        frozenset({Kind.TIME, Kind.WEEKDAY, Kind.DATE}),
    ),
    (
        re.compile(r"\b(?:how (?:much|many|old|far|long|big|high)|(?:code|number|price|pin|budget))\b", re.IGNORECASE),
        frozenset({Kind.FIGURE, Kind.TIME}),
    ),
    (re.compile(r"\b(?:who|whom|whose|where|which)\b", re.IGNORECASE), frozenset({Kind.NAME})),
)
_DAYS = frozenset({Kind.WEEKDAY, Kind.DATE})


@dataclass(frozen=True, slots=True)
class SpokenSentence:
    """One sentence with its turn (`seq`) and the id of its speaker."""

    seq: int
    speaker: str
    text: str


@sentence_cache(most=2_048)
def is_bare_correction(sentence: str) -> bool:
    """Return whether a sentence announces a change and has a new value, but doesn't say what has changed."""
    if asks(sentence) or not (TAKING_BACK.match(sentence) or OTHERWISE.search(sentence)):
        return False
    clause = _giving_clause(sentence)
    return clause is not None and not _subject(clause)


def find_reference(said: Sequence[SpokenSentence], position: int) -> int | None:
    """Return the position of the sentence that a bare correction or a bare answer is about.

    Returns None if the sentence at `position` is neither, or if no earlier sentence fits. `said` is in the order of
    talk. A question just before is preferred to any statement; it must ask for such a value or name one. A statement
    must contain a value of the same kind and say something lasting. The nearest one is chosen.
    """
    bare = said[position]
    correcting = is_bare_correction(bare.text)
    if asks(bare.text) or not (correcting or (answers_barely(bare.text) and values(bare.text))):
        return None
    question = _question_before(said, position)
    return question if question is not None or not correcting else _statement_before(said, position)


def _question_before(said: Sequence[SpokenSentence], position: int) -> int | None:
    bare = said[position]
    given = _given(bare.text)
    for at in range(position - 1, max(-1, position - 1 - _QUESTION_SENTENCES), -1):
        each = said[at]
        if each.speaker == bare.speaker or not asks(each.text) or bare.seq - each.seq > REACH_TURNS:
            continue
        if _takes(given, each.text) or _asks_for(given, each.text) or _agrees(bare.text, given, each.text):
            return at
    return None


def _statement_before(said: Sequence[SpokenSentence], position: int) -> int | None:
    bare = said[position]
    given = _given(bare.text)
    for at in range(position - 1, -1, -1):
        each = said[at]
        if bare.seq - each.seq > REACH_TURNS:
            return None
        beside = each.speaker == bare.speaker and bare.seq - each.seq <= _BESIDE_TURNS and not is_passing(each.text)
        lasting = is_bare_correction(each.text) or durability(each.text) > 1.0 or beside
        if lasting and _takes(given, each.text):
            return at
    return None


@sentence_cache(most=2_048)
def _given(sentence: str) -> frozenset[Value]:
    """Return the values that a correction gives, without the values that it denies ('nine, not eight')."""
    clause = _giving_clause(sentence)
    return frozenset() if clause is None else _clause_values(clause)


def _giving_clause(sentence: str) -> str | None:
    """Return the first clause with a value. Later clauses give reasons ('Saturday, the hall is taken on Friday')."""
    told = _DENIED.sub("", TAKING_BACK.sub("", sentence))
    return next((clause for clause in _CLAUSE.split(told) if _clause_values(clause)), None)


def _clause_values(clause: str) -> frozenset[Value]:
    """Return a clause's values. A capitalised first word counts as a name, because a clause rarely begins a
    sentence.
    """
    return values(clause) | {Value(Kind.NAME, name) for name in names(clause) if name not in CALENDAR}


def _subject(clause: str) -> frozenset[str]:
    """Return the topics of a clause, without its values."""
    topics = concepts(without_times(clause)).topics - change_words(clause)
    named = {value.what for value in of_kind(_clause_values(clause), Kind.NAME)}
    return frozenset(stem(topic) for topic in topics - named) - _NO_SUBJECT


def _takes(given: frozenset[Value], text: str) -> bool:
    """Return whether one of the given values could replace a value in the text."""
    old = values(text)
    return any(_replaces(mine, theirs) for mine in given for theirs in old)


def _agrees(answer: str, given: frozenset[Value], question: str) -> bool:
    """Return whether an answer says yes or no to a question, or repeats a value from the question."""
    repeated = any(same_value(mine, theirs) for mine in given for theirs in values(question))
    return repeated or (_YES_OR_NO.match(answer) is not None and not is_passing(question))


def _replaces(mine: Value, theirs: Value) -> bool:
    if same_value(mine, theirs):
        return False
    if mine.kind is Kind.FIGURE and theirs.kind is Kind.TIME:
        return is_hour(mine)
    if mine.kind is Kind.FIGURE and theirs.kind is Kind.FIGURE:
        # A figure replaces only a figure of similar length: 'nine' does not replace a code of four digits.
        return abs(len(mine.what) - len(theirs.what)) <= 1
    return mine.kind is theirs.kind or {mine.kind, theirs.kind} == _DAYS


def _asks_for(given: frozenset[Value], question: str) -> bool:
    kinds = {value.kind for value in given}
    if any(is_hour(value) for value in given):
        kinds.add(Kind.TIME)
    asked = next((asked for cue, asked in _ASKED_KINDS if cue.search(question)), frozenset())
    return not asked.isdisjoint(kinds) and len(words(question)) > 2
