"""Decides whether a later statement corrects an earlier one by giving another value for the same thing. Pure.

The decision uses only the words and is therefore cautious. Additions, questions, and statements of different people
about themselves correct nothing. The cues are English; in other languages figures and names still work.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from compaction.language.claims import claim_of, corrects
from compaction.language.lexicon import CALENDAR
from compaction.language.terms import terms
from compaction.language.wording import QUESTION_MARKS, concepts, kind_of, sentences
from compaction.model import Fact, Seq
from compaction.sentence_cache import sentence_cache

if TYPE_CHECKING:
    from collections.abc import Mapping

    from compaction.language.claims import FactClaim

# How much of their concepts two statements must share: less if the later one announces a change, most if neither has a
# value.
_ALIKE_ANNOUNCED = 0.25
_ALIKE = 0.5
_ALIKE_WITHOUT_VALUES = 0.6
# A correction must contain at least this share of the question's terms that the old statement contains, by weight.
AS_MUCH = 0.4
# 'No wait, I meant the blue one.': a correction said directly afterwards need not repeat words of the old sentence.
_TAKES_BACK = re.compile(
    r"\b(?:i meant?|i mean|scratch that|correction|i was wrong|that was wrong|my mistake|make (?:that|it)|"
    r"(?:no|oh|sorry|actually)[, ]+(?:wait|no|sorry|it's|it is|that's|make|not)|"
    r"wait,? (?:no|it's|it is|that's)|(?:it's|it is|that's) actually)\b",
    re.IGNORECASE,
)
# Words that announce a change. A false alarm does little harm here, because both statements must also be about the same
# thing.
_ANNOUNCES = re.compile(
    r"\b(?:actually|instead|no longer|any ?more|chang\w+|mov(?:ed?|es|ing)|correction|i meant|rather than|scratch that|"
    r"second thoughts?|turns? out|new|now|these days|wait|not \w+ but|updat\w+|switch\w*|postpon\w+|delayed?|wrong|"
    r"after all|in the end|becomes?|became|swapp?\w*|replac\w+|cancel\w*|reschedul\w+|pushed|brought forward)\b",
    re.IGNORECASE,
)
_BARELY = re.compile(
    r"(?:oh|well|um|uh|er|ah|ha)?[, ]*(?:no(?! longer)|nope|nah|negative|not any ?more|never|wrong|scrap that|"
    r"scratch that|forget (?:that|it))\b",
    re.IGNORECASE,
)
# An answer of at most this many words may lack a subject of its own.
_SHORT_WORDS = 8
_NOTHING_ASKED: Mapping[str, float] = MappingProxyType({})
_OWN = re.compile(r"\b(?:i|i'm|i've|i'd|i'll|my|mine|me)\b", re.IGNORECASE)
_STATES = re.compile(
    r"\b(?:is|are|was|will be|'s|'re|costs?|starts?|begins?|leaves?|opens?|closes?|moved?|changed?|switched?)\b|"
    r"\w'(?:s|re)\b",
    re.IGNORECASE,
)
_ASKS = re.compile(
    r"^(?:and |so |but |hey |okay |ok |well )?(?:what|when|where|which|who|whose|why|how|"
    r"is|are|was|were|do|does|did|can|could|will|would|should|have|has)\b(?! i was| we were)",
    re.IGNORECASE,
)
# Denials: 'no longer the healer', 'not under the blue pot', 'Rex was the old one', 'the Grand was full'.
_DENIES = re.compile(
    r"\b(?:no longer|not|instead of|rather than|isn't|aren't)\s+(?P<what>(?:\w+\s+){0,3}\w+)|"
    r"(?P<that>\w+) (?:was (?:the old|full|wrong|taken|cancelled)|is (?:out|off|cancelled)|"
    r"can't|cannot|isn't|doesn't)\b",
    re.IGNORECASE,
)
_ADDS = re.compile(r"\b(?:also|too|as well|another|besides|both|in addition)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Statement:
    """What one person said at one moment (UTC epoch seconds). `seq` orders the statements of a session.

    `answered`: the question just before, if any. It may name the subject that an answer leaves out ('No, Sunday now.').
    """

    session: str
    seq: int
    at: float
    speaker: str
    text: str
    answered: str = ""


def replaces(new: Statement, old: Statement, *, asked: Mapping[str, float] = _NOTHING_ASKED) -> bool:
    """Return whether `new`, which was said later, gives another value for what `old` said.

    `asked`: the terms of the question that found both statements, with their weights. A statement that contains much
    less of the question than the old statement is about something else.
    """
    if not _later(new, old):
        return False
    same_speaker = new.speaker == old.speaker
    told = f"{old.answered} {old.text}" if answers_barely(old.text) else old.text
    in_answer = f"{new.answered} {new.text}"
    if (
        new.answered
        and _as_much_asked(in_answer, told, asked)
        and _answer_replaces(new, told, asked, same_speaker=same_speaker)
    ):
        return True
    # A bare answer ('No.') says nothing by itself, so only its denials are compared.
    bare = answers_barely(new.text)
    return any(
        _denies_old(after, before, same_speaker=same_speaker)
        or (not bare and _as_much_asked(after, before, asked) and _gives_other_value(after, before, new, old, asked))
        for after in _statements(new.text)
        for before in (_statements(told) if told is old.text else (told,))
    )


def announces(text: str) -> bool:
    """Return whether a text announces a change, or takes back what was just said."""
    return _ANNOUNCES.search(text) is not None or _TAKES_BACK.search(text) is not None


def asks(sentence: str) -> bool:
    """Return whether a sentence is a question, even without a question mark, which speech recognisers often
    leave out.
    """
    return sentence.rstrip("\"”’')] ").endswith(QUESTION_MARKS) or _ASKS.match(sentence.lstrip()) is not None


def answers_barely(text: str) -> bool:
    """Return whether a text is an answer that doesn't name its subject, like 'No, it's Sunday now.'"""
    return _BARELY.match(text.lstrip()) is not None


def may_answer(text: str) -> bool:
    """Return whether a text can be an answer that contradicts or adds to the question before it."""
    return not asks(text) and (answers_barely(text) or announces(text) or len(text.split()) <= _SHORT_WORDS)


def takes_back(new: Statement, old: Statement) -> bool:
    """Return whether `new` corrects `old` without repeating the subject ('No wait, I meant Friday.').

    `new` must be said right after `old` by the same person.
    """
    if new.speaker != old.speaker or not _later(new, old) or new.session != old.session:
        return False
    if _TAKES_BACK.search(new.text) is None:
        return False
    before = frozenset().union(*(concepts(each).all for each in _statements(old.text)))
    return bool(before) and any(
        _TAKES_BACK.search(each) and concepts(each).all - before for each in _statements(new.text)
    )


def _later(new: Statement, old: Statement) -> bool:
    return new.seq > old.seq if new.session == old.session else new.at > old.at


@sentence_cache(most=512)
def _statements(text: str) -> tuple[str, ...]:
    """Return the sentences of a text that are not questions."""
    return tuple(each for each in sentences(text) if not asks(each))


def _answer_replaces(new: Statement, told: str, asked: Mapping[str, float], *, same_speaker: bool) -> bool:
    """Return whether an answer replaces an earlier statement. The question names the subject, and the answer has the
    value.
    """
    subject, value, old = concepts(new.answered), concepts(new.text), concepts(told)
    shared = subject.all & old.all
    # Days and figures alone are not a subject, because many things are at ten.
    names = (subject.names & old.names) - CALENDAR
    if not (subject.topics & old.topics or names) or (not same_speaker and _OWN.search(told)):
        return False
    if len(shared) < 2 and len(old.topics) > 1 and asked.keys().isdisjoint(_stems(shared)):
        return False
    if not answers_barely(new.text):
        # 'Is it still on Wednesday?' 'Sunday.': without a 'no', the answer is a correction only if the question
        # contains the old value and the answer contains another one.
        return bool(subject.values & old.values) and bool(value.values - old.values)
    # Any value counts here, because 'quarter to ten' after 'ten to five' is another value with the same figure.
    return bool(value.values) if old.values else bool(value.all - old.all)


@sentence_cache(most=1_024)
def denies(text: str) -> bool:
    """Return whether a text says that something is no longer true."""
    return _DENIES.search(text) is not None


def _as_much_asked(after: str, before: str, asked: Mapping[str, float]) -> bool:
    """Return whether the later sentence contains enough of the question's terms that the earlier sentence contains."""
    if not asked:
        return True
    of_old, of_new = _terms(before), _terms(after)
    if (asked.keys() & (of_old - of_new)) & _stems(concepts(before).values):
        # If the question is about Tomas, a statement about Olga is not a correction.
        return False
    held = sum(weight for term, weight in asked.items() if term in of_old)
    return sum(weight for term, weight in asked.items() if term in of_new) >= AS_MUCH * held


def _denies_old(after: str, before: str, *, same_speaker: bool) -> bool:
    if not same_speaker and (_OWN.search(before) or _OWN.search(after)):
        return False
    if not denies(after) or _ADDS.search(after):
        return False
    new, old = concepts(after), concepts(before)
    return bool(new.all & old.all) and bool(new.all - old.all) and _denies(after, before)


def _gives_other_value(after: str, before: str, said: Statement, told: Statement, asked: Mapping[str, float]) -> bool:
    if said.speaker != told.speaker and (_OWN.search(before) or _OWN.search(after)):
        # Both people speak about themselves, and everybody has a favourite colour of their own.
        return False
    if corrects(_claim(after, said.speaker), _claim(before, told.speaker)):
        return True
    new, old = concepts(after), concepts(before)
    shared, fresh, gone = new.all & old.all, new.all - old.all, old.all - new.all
    if not new.topics & old.topics or not fresh or _ADDS.search(after):
        return False
    if not gone and not (announces(after) and new.values - old.values):
        # The later sentence says the same and more. 'Actually three' after 'two' is still a correction, although 'two'
        # is not counted as a figure.
        return False
    if old.values - new.values and not new.values - old.values:
        # The old sentence has a value and the new one has none in its place. A value can be replaced only by another
        # value.
        return False
    if len(shared) < 2 and bool(new.values - old.values) != bool(old.values - new.values):
        # 'The gate code is 7702 now' does not correct 'the gate is rusty'.
        return False
    alike = len(shared) / min(len(new.all), len(old.all))
    if announces(after):
        on_topic = not asked or len(shared) >= 2 or not asked.keys().isdisjoint(_stems(shared))
        return alike >= _ALIKE_ANNOUNCED and on_topic
    if (new.names ^ old.names) - CALENDAR:
        # If no change is announced, a different name means a different subject.
        return False
    if len(shared) < 2 or len(fresh) > 2 or not (_STATES.search(after) and _STATES.search(before)):
        return False
    values = bool(new.values - old.values and old.values - new.values)
    return alike >= (_ALIKE if values else _ALIKE_WITHOUT_VALUES)


def _denies(after: str, before: str) -> bool:
    """Return whether the later sentence denies something that the earlier sentence mentions."""
    old = concepts(before).all
    return any(
        not old.isdisjoint(concepts(match["what"] or match["that"]).all) and match.group() not in before
        for match in _DENIES.finditer(after)
    )


@sentence_cache(most=2_048)
def _claim(sentence: str, speaker: str) -> FactClaim:
    return claim_of(Fact((Seq(0),), kind_of(sentence), speaker, 0.0, sentence))


@sentence_cache(most=2_048)
def _terms(sentence: str) -> frozenset[str]:
    return frozenset(terms(sentence))


@sentence_cache(most=2_048)
def _stems(words: frozenset[str]) -> frozenset[str]:
    return frozenset(terms(" ".join(sorted(words))))
