"""Which turns correct which others, among those that a search found: 'Sunday now' follows the Saturday it replaces.

`move_corrections_up` marks the corrected passages and lifts what holds to their score. What folding found out before
(`Passage.replaced_by`) counts too.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from compaction.language.meaning import meaning, replaces
from compaction.language.terms import terms
from compaction.language.text import sentences
from compaction.memory.outdated_turns import asks
from compaction.memory.ranked_passage import TurnRef, answered_turn
from compaction.model import Turn, TurnKind
from compaction.summary.denials import denies, may_be_about, says_no

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from compaction.language.meaning import Meaning
    from compaction.memory.passage import Passage, PassageId
    from compaction.memory.query import SearchTerms
    from compaction.memory.ranked_passage import RankedPassage
    from compaction.model import Seq

# Corrections are looked for among so many of the best passages.
_COMPARED = 20
# Two statements are about the same thing only if the old one covers this share of the query, and the new one covers
# this share of what the old one covers.
_LEAST_COVERED = 0.3
_AS_MUCH = 0.4
# 'No wait, I meant Friday.' corrects what the same person said so many turns before.
_TAKEN_BACK_WITHIN = 3
_TAKES_BACK_CHARS = 80


@dataclass(frozen=True, slots=True)
class _Statement:
    """One sentence of a turn, with what it says. `asked`: the question that it answers, whose subject is its own.
    `denies`: it begins with a no.
    """

    speaker_id: str
    meaning: Meaning
    asked: Meaning | None = None
    denies: bool = False


class _Reader:
    """What turns say about one query. Each turn is read once, because each pair of passages asks."""

    def __init__(self, search_terms: SearchTerms) -> None:
        self._search_terms = search_terms
        self._read: dict[PassageId, tuple[_Statement, ...]] = {}
        self.query_weight = sum(search_terms.weights.values())

    def statements(self, ranked: RankedPassage) -> tuple[_Statement, ...]:
        passage = ranked.passage
        if passage.id not in self._read:
            self._read[passage.id] = _statements(passage, self._search_terms)
        return self._read[passage.id]


def move_corrections_up(ranked: Sequence[RankedPassage], search_terms: SearchTerms) -> None:
    """Find which turns correct which others, and give a correction the score of what it corrects. Changes `ranked`,
    whose order decides which are compared: best first.
    """
    reader = _Reader(search_terms)
    turns = {each.ref: each for each in ranked if isinstance(each.passage.source, Turn)}
    stated = [each for each in turns.values() if _is_spoken(each.passage.source)][:_COMPARED]
    stated.sort(key=lambda each: (-each.passage.at, -each.passage.id))
    found = {each.ref: new for each in stated if (new := _correction(each, stated, reader)) is not None}
    for old in turns.values():
        by = old.passage.replaced_by
        known = None if by is None else turns.get(TurnRef(old.passage.session_id, by))
        if known is not None and isinstance(old.passage.source, Turn) and asks(old.passage.source):
            # A question is answered, not corrected: the answer comes with it, and neither is marked.
            known.score, known.relevance = max(known.score, old.score), max(known.relevance, old.relevance)
        elif known is not None and (old.ref not in found or known.passage.at > found[old.ref].passage.at):
            found[old.ref] = known
    # From the oldest on, so that the last value of a chain gets the best score of all.
    for ref in sorted(found, key=lambda each: (turns[each].passage.at, turns[each].passage.id)):
        old, new = turns[ref], found[ref]
        assert ref is not None, "only turns are compared"
        new.score, new.relevance = max(new.score, old.score), max(new.relevance, old.relevance)
        last = new
        # At most so many steps: clocks that disagree between sessions could make a ring.
        for _ in found:
            last = found.get(last.ref, last)
        old.superseded_by = last.ref
        last.supersedes.append(ref)
    for old in stated:
        if (
            old.superseded_by is None
            and (same := _latest(old, stated, reader, _gives_another_value, share=1.0)) is not None
        ):
            # What took its place holds.
            holding = same if same.superseded_by is None else turns.get(same.superseded_by, same)
            holding.score = max(holding.score, old.score)
        if old.superseded_by is None and (seq := _taken_back_at(old, reader)) is not None:
            old.superseded_by, old.through = TurnRef(old.passage.session_id, seq), seq


def _is_spoken(source: object) -> bool:
    return isinstance(source, Turn) and source.kind is TurnKind.SPEECH


def _correction(old: RankedPassage, stated: Sequence[RankedPassage], reader: _Reader) -> RankedPassage | None:
    """Return the latest turn that corrects `old`."""
    # A question that names the old value tells more than the words of the query what it is about.
    denying = _latest(old, stated, reader, _denies, least=0.0, share=0.0)
    return denying or _latest(old, stated, reader, _replaces)


def _latest(
    old: RankedPassage,
    stated: Sequence[RankedPassage],
    reader: _Reader,
    judge: Callable[[_Statement, _Statement], bool],
    *,
    least: float = _LEAST_COVERED,
    share: float = _AS_MUCH,
) -> RankedPassage | None:
    """Return the latest turn that says as much about the query as `old` and has a statement of which `judge` is true.

    `stated`: latest first. `judge` is given the later statement and the older one. `least`: the share of the query that
    `old` must cover; `share`: that of `old` which the later one must.
    """
    if not old.covered or old.covered < least * reader.query_weight:
        return None
    for new in stated:
        if new.passage.at < old.passage.at:
            return None
        if new.covered < share * old.covered or not _is_later(new, old):
            continue
        if any(judge(said, told) for told in reader.statements(old) for said in reader.statements(new)):
            return new
    return None


def _denies(new: _Statement, old: _Statement) -> bool:
    return new.asked is not None and new.denies and denies(new.meaning, new.asked, old.meaning)


def _replaces(new: _Statement, old: _Statement) -> bool:
    if new.asked is not None and not may_be_about(new.asked, old.meaning):
        return False
    return replaces(new.meaning, old.meaning, same_speaker=new.speaker_id == old.speaker_id)


def _gives_another_value(new: _Statement, old: _Statement) -> bool:
    """Return whether both give a value, and another one each of a like kind: a number takes no day's place."""
    one, other = new.meaning, old.meaning
    return (
        bool(one.values - other.values and other.values - one.values)
        and any(map(str.isalpha, one.values)) == any(map(str.isalpha, other.values))
        and one.negated == other.negated
    )


def _is_later(new: RankedPassage, old: RankedPassage) -> bool:
    if new.ref is not None and old.ref is not None and new.ref.session_id == old.ref.session_id:
        return new.ref.seq > old.ref.seq
    return new.passage.at > old.passage.at


def _statements(passage: Passage, search_terms: SearchTerms) -> tuple[_Statement, ...]:
    """Return what a turn says about the query, without questions: its sentences with a term of the query.

    An answer is about what its question is about ('Is the quiz still on Wednesday?' 'No, Sunday now.').
    """
    source, wanted = passage.source, search_terms.weights.keys()
    if not isinstance(source, Turn):
        return ()
    question = answered_turn(passage)
    asked = None if question is None or wanted.isdisjoint(terms(question.text)) else meaning(question.text)
    said = [(part.speaker_id, sentence) for part in source.parts for sentence in sentences(part.text)]
    if asked is None:
        # Reading the terms of each sentence takes time, and most turns have only one.
        if wanted.isdisjoint(passage.own_terms):
            return ()
        said = [each for each in said if len(said) == 1 or not wanted.isdisjoint(terms(each[1]))]
    found: list[_Statement] = []
    for speaker_id, sentence in said:
        told, answered = meaning(sentence), None
        is_denial = asked is not None and says_no(sentence)
        if asked is not None and (told.announces or is_denial):
            told, answered = _answering(told, asked), asked
        elif asked is not None and wanted.isdisjoint(terms(sentence)):
            # 'Sunday is my birthday, by the way.'
            continue
        if not told.asks:
            found.append(_Statement(speaker_id, told, answered, is_denial))
    return tuple(found)


def _answering(told: Meaning, asked: Meaning) -> Meaning:
    """Return what an answer says, with the subject of its question."""
    thing = told.thing or asked.thing
    return replace(told, topics=told.topics | asked.topics, names=told.names | asked.names, thing=thing)


def _taken_back_at(old: RankedPassage, reader: _Reader) -> Seq | None:
    """Return the turn just after `old` in which the same person takes it back without repeating its subject."""
    told = reader.statements(old)
    for turn in old.passage.around:
        if old.ref is None or not old.ref.seq < turn.seq <= old.ref.seq + _TAKEN_BACK_WITHIN or not _is_spoken(turn):
            continue
        for part in turn.parts:
            own = [each.meaning for each in told if each.speaker_id == part.speaker_id]
            if own and len(part.text) <= _TAKES_BACK_CHARS:
                said = meaning(part.text)
                if any(_takes_back(said, each) for each in own):
                    return turn.seq
    return None


def _takes_back(new: Meaning, old: Meaning) -> bool:
    """Return whether a statement gives another value and says nothing about another thing."""
    values = new.values | new.names
    return new.announces and not new.asks and not new.topics - old.topics and bool(values - old.values - old.names)
