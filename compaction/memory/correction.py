"""Which of two statements still holds: whether a later one gives another value for what an earlier one said. Pure.

Judged on the words alone, so it is shy: what merely adds to a statement, what somebody says of themselves after
somebody else did, and questions replace nothing. English cues; elsewhere figures and names still tell.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from compaction.memory.terms import terms
from compaction.wording import concepts, sentences

if TYPE_CHECKING:
    from compaction.wording import Concepts

# A correction shares this much of what the old sentence is about; more when nothing announces it.
_ALIKE_ANNOUNCED = 0.25
_ALIKE = 0.5
_ALIKE_WITHOUT_VALUES = 0.6
# 'No wait, I meant the blue one.': what follows at once needs no other words of the old sentence.
_TAKES_BACK = re.compile(
    r"\b(?:i meant?|i mean|scratch that|correction|i was wrong|that was wrong|my mistake|make (?:that|it)|"
    r"(?:no|oh|sorry|actually)[, ]+(?:wait|no|sorry|it's|it is|that's|make|not)|"
    r"wait,? (?:no|it's|it is|that's)|(?:it's|it is|that's) actually)\b",
    re.IGNORECASE,
)
# What announces a change; here a false alarm costs little, since both statements must be about the same thing.
_ANNOUNCES = re.compile(
    r"\b(?:actually|instead|no longer|any ?more|chang\w+|mov(?:ed?|es|ing)|correction|i meant|rather than|scratch that|"
    r"second thoughts?|turns? out|new|now|these days|wait|not \w+ but|updat\w+|switch\w*|postpon\w+|delayed?|wrong|"
    r"after all|in the end|becomes?|became|swapp?\w*|replac\w+|cancel\w*|reschedul\w+|pushed|brought forward)\b",
    re.IGNORECASE,
)
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
# 'no longer the healer', 'not under the blue pot', 'Rex was the old one', 'the Grand was full'.
_DENIES = re.compile(
    r"\b(?:no longer|not|instead of|rather than|isn't|aren't)\s+(?P<what>(?:\w+\s+){0,3}\w+)|"
    r"(?P<that>\w+) (?:was (?:the old|full|wrong|taken|cancelled)|is (?:out|off|cancelled)|"
    r"can't|cannot|isn't|doesn't)\b",
    re.IGNORECASE,
)
_ADDS = re.compile(r"\b(?:also|too|as well|another|besides|both|in addition)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Statement:
    """What one person said at one moment (UTC epoch seconds). `seq` orders it among those of its session."""

    session: str
    seq: int
    at: float
    speaker: str
    text: str


def replaces(new: Statement, old: Statement, *, asked: frozenset[str] = frozenset()) -> bool:
    """Return whether `new`, said later, gives another value for what `old` said.

    `asked`: the terms of the question both were found by; a sentence that is about it counts for more.
    """
    if not _later(new, old):
        return False
    same_speaker = new.speaker == old.speaker
    return any(
        _gives_other_value(after, before, same_speaker=same_speaker, asked=asked)
        for after in _statements(new.text)
        for before in _statements(old.text)
    )


def announces(text: str) -> bool:
    """Return whether a text says that something is no longer as it was, or takes back what was just said."""
    return _ANNOUNCES.search(text) is not None or _TAKES_BACK.search(text) is not None


def asks(sentence: str) -> bool:
    """Return whether a sentence asks rather than states; recognisers often lose the question mark."""
    return sentence.rstrip("\"”’')] ").endswith("?") or _ASKS.match(sentence.lstrip()) is not None


def takes_back(new: Statement, old: Statement) -> bool:
    """Return whether `new`, said right after `old` by the same person, corrects it without repeating what it is
    about ('No wait, I meant Friday.')."""
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


@lru_cache(maxsize=512)
def _statements(text: str) -> tuple[str, ...]:
    """Return the sentences that state something."""
    return tuple(each for each in sentences(text) if not asks(each))


@lru_cache(maxsize=2_048)
def _about(sentence: str) -> Concepts:
    return concepts(sentence)


def _gives_other_value(after: str, before: str, *, same_speaker: bool, asked: frozenset[str]) -> bool:
    if not same_speaker and (_OWN.search(before) or _OWN.search(after)):
        # Everybody has a favourite colour of their own.
        return False
    new, old = _about(after), _about(before)
    shared, fresh, gone = new.all & old.all, new.all - old.all, old.all - new.all
    if not shared or not fresh or _ADDS.search(after):
        return False
    if _denies(after, old.all):
        return True
    if not new.topics & old.topics or not gone:
        return False
    if old.values - new.values and not new.values - old.values:
        # A figure or a name is replaced by another one.
        return False
    alike = len(shared) / min(len(new.all), len(old.all))
    if announces(after):
        return alike >= _ALIKE_ANNOUNCED and (not asked or len(shared) >= 2 or not asked.isdisjoint(_stems(shared)))
    if len(shared) < 2 or len(fresh) > 2 or not (_STATES.search(after) and _STATES.search(before)):
        return False
    values = bool(new.values - old.values and old.values - new.values)
    return alike >= (_ALIKE if values else _ALIKE_WITHOUT_VALUES)


def _denies(after: str, old: frozenset[str]) -> bool:
    """Return whether a sentence says of something of the old one that it is no longer so."""
    denied = (match["what"] or match["that"] for match in _DENIES.finditer(after))
    return any(not old.isdisjoint(concepts(each).all) for each in denied)


@lru_cache(maxsize=2_048)
def _stems(words: frozenset[str]) -> frozenset[str]:
    return frozenset(terms(" ".join(sorted(words))))
