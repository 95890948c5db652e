"""Ranks the passages that a search found: corrections before what they correct, and no turn shown twice.

`rank_hits` weighs each passage by what it is and who said it, and moves a correction up to the passage that it
corrects. `bot.memory.recall` queries the index first. Deterministic.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from compaction.language.meaning import meaning, replaces
from compaction.language.terms import normalized_words, terms
from compaction.language.text import QUESTION_MARKS, sentences
from compaction.memory.passage import PassageKind, source_kind
from compaction.model import Note, Segment, Seq, Turn, TurnKind

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from compaction.language.meaning import Meaning
    from compaction.memory.passage import Passage, PassageId
    from compaction.memory.query import SearchQuery, SearchTerms
    from compaction.model import NoteId, SessionId

# The weights were tuned on three of LoCoMo's conversations and judged on two others; retune with `roomtone bench
# memory --transcripts`.
SPEAKER_BOOST = 1.2
# A question rarely holds the answer, but a turn next to it may.
QUESTION_WEIGHT = 0.9
NEIGHBOUR_SHARE = 0.5
_KIND_WEIGHT = {PassageKind.TURN: 1.0, PassageKind.NOTE: 0.95, PassageKind.SEGMENT: 0.7}
_TURN_WEIGHT = {TurnKind.SPEECH: 1.0, TurnKind.ASSISTANT: 0.7, TurnKind.MEMBERSHIP: 0.5, TurnKind.EFFECT: 0.5}
# A passage without a word of the query is a hit only if its embedding is so similar to the query's: cosine.
LEAST_LIKENESS = 0.3
# Corrections are looked for among so many of the best passages.
_COMPARED = 20
# Two statements are about the same thing only if the old one covers this share of the query, and the new one covers
# this share of what the old one covers.
_LEAST_COVERED = 0.3
_AS_MUCH = 0.4
# 'No wait, I meant Friday.' corrects what the same person said so many turns before.
_TAKEN_BACK_WITHIN = 3
_TAKES_BACK_CHARS = 80
# A hit shows this many turns before and after the turn that was found.
_NEIGHBOURS = 1


@dataclass(frozen=True, slots=True)
class TurnRef:
    """One turn of one session."""

    session_id: SessionId
    seq: Seq


@dataclass(frozen=True, slots=True)
class RecallHit:
    """One search hit, word for word. `at`: UTC epoch seconds.

    `seq`: the turn that was found. `turns`: that turn with its neighbours, `seq_from <= seq <= seq_to`. A segment has a
    range but no turns; a note has neither. `relevance`: the share of the query that the hit covers (0.0-1.0).
    `likeness`: cosine of the embeddings, or None if they were not compared. `superseded_by`: the later turn that
    corrects this one. `supersedes`: the turns that this one corrects.
    """

    passage_id: PassageId
    kind: PassageKind
    session_id: SessionId
    seq: Seq | None
    seq_from: Seq | None
    seq_to: Seq | None
    turns: tuple[Turn, ...]
    speaker: str
    at: float
    text: str
    score: float
    relevance: float = 0.0
    likeness: float | None = None
    turn_kind: TurnKind | None = None
    superseded_by: TurnRef | None = None
    supersedes: tuple[TurnRef, ...] = ()
    note_id: NoteId | None = None


def rank_hits(
    query: SearchQuery,
    search_terms: SearchTerms,
    passages: Iterable[Passage],
    scores: Mapping[PassageId, float],
    *,
    likeness: Mapping[PassageId, float] | None = None,
    in_view: tuple[SessionId, Seq] | None = None,
    limit: int,
) -> tuple[RecallHit, ...]:
    """Return at most `limit` hits, best first, a correction before what it corrects.

    `scores`: from `fuse_rankings`. A passage without a score may only correct another one, and is returned only if it
    does. `likeness`: cosine of each passage's embedding with the query's. `in_view`: turns of this session from this
    seq on may correct others, but are not returned. A query without terms or embedding keeps the order of the scores.
    """
    alike = likeness or {}
    ranked = [_Ranked.of(each, query, search_terms, scores, alike) for each in passages]
    if search_terms.weights or alike:
        ranked = [each for each in ranked if each.relevance > 0.0 or each.score == 0.0]
        _move_corrections_up(sorted(ranked, key=_order), search_terms)
    stale = {each.ref for each in ranked if each.superseded_by is not None}
    chosen: list[_Ranked] = []
    shown = _ShownText()
    for each in sorted((each for each in ranked if each.score > 0.0), key=_order):
        if len(chosen) == limit:
            break
        if not _is_in_view(each.ref, in_view) and shown.add(each):
            chosen.append(each)
    # Each turn is shown once: by the hit that found it, else by its best neighbour.
    taken = {each.ref for each in chosen}
    hits: list[RecallHit] = []
    for each in chosen:
        hit = each.as_hit(taken | stale)
        taken.update(TurnRef(hit.session_id, turn.seq) for turn in hit.turns)
        hits.append(hit)
    return tuple(hits)


@dataclass(slots=True)
class _Ranked:
    """A passage with its score, and what it corrects."""

    passage: Passage
    ref: TurnRef | None
    score: float
    relevance: float
    likeness: float | None
    # Weight of the query's terms in the passage's own text, and in the question that it answers.
    covered: float
    # Whether it was found for its own text, not only for a neighbour's.
    found_itself: bool = True
    superseded_by: TurnRef | None = None
    supersedes: list[TurnRef] = field(default_factory=list)
    # The last turn that must be shown, because it takes the found one back.
    through: int = -1
    _statements: tuple[_Statement, ...] | None = None

    @classmethod
    def of(
        cls,
        passage: Passage,
        query: SearchQuery,
        search_terms: SearchTerms,
        scores: Mapping[PassageId, float],
        likeness: Mapping[PassageId, float],
    ) -> _Ranked:
        score = scores.get(passage.id, 0.0) * _weight(passage)
        if any(_named(name, query.words) for name in passage.speakers):
            score *= SPEAKER_BOOST
        alike = likeness.get(passage.id)
        own = search_terms.weight_in(passage.own_terms)
        question = _question_before(passage)
        asked = frozenset(terms(_text_of(question))) if question is not None else frozenset()
        source = passage.source
        return cls(
            passage,
            TurnRef(passage.session_id, source.seq) if isinstance(source, Turn) else None,
            score,
            _relevance(passage, search_terms, own, alike),
            alike,
            search_terms.weight_in(passage.own_terms | asked),
            own > 0.0 or question is not None or (alike is not None and alike >= LEAST_LIKENESS),
        )

    def statements(self, search_terms: SearchTerms) -> tuple[_Statement, ...]:
        """Return what its turn says about the query. Read once, because each pair of passages asks."""
        if self._statements is None:
            self._statements = _statements(self.passage, search_terms)
        return self._statements

    def as_hit(self, elsewhere: Collection[TurnRef | None]) -> RecallHit:
        """Return the hit. Neighbours in `elsewhere` are left out: other hits show them, or they were corrected."""
        source = self.passage.source
        turns: tuple[Turn, ...] = ()
        seq = seq_from = seq_to = None
        if isinstance(source, Turn):
            seq = source.seq
            last = max(seq + _NEIGHBOURS, self.through)
            turns = tuple(
                each
                for each in self.passage.around
                if seq - _NEIGHBOURS <= each.seq <= last
                and (each.seq in (seq, self.through) or TurnRef(self.passage.session_id, each.seq) not in elsewhere)
            )
            turns = turns or (source,)
            seq_from, seq_to = turns[0].seq, turns[-1].seq
        elif isinstance(source, Segment):
            seq_from, seq_to = source.start, Seq(max(source.start, source.end - 1))
        return RecallHit(
            passage_id=self.passage.id,
            kind=source_kind(source),
            session_id=self.passage.session_id,
            seq=seq,
            seq_from=seq_from,
            seq_to=seq_to,
            turns=turns,
            speaker=", ".join(self.passage.speakers),
            at=self.passage.at,
            text=self.passage.text,
            score=self.score,
            relevance=self.relevance,
            likeness=self.likeness,
            turn_kind=source.kind if isinstance(source, Turn) else None,
            superseded_by=self.superseded_by,
            supersedes=tuple(self.supersedes),
            note_id=source.id if isinstance(source, Note) else None,
        )


def _is_in_view(ref: TurnRef | None, in_view: tuple[SessionId, Seq] | None) -> bool:
    return ref is not None and in_view is not None and ref.session_id == in_view[0] and ref.seq >= in_view[1]


def _order(each: _Ranked) -> tuple[float, float, int]:
    return (-each.score, -each.passage.at, -each.passage.id)


def _question_before(passage: Passage) -> Turn | None:
    """Return the turn just before this one, if it asks something."""
    source = passage.source
    before = passage.around[0] if passage.around else None
    if not isinstance(source, Turn) or before is None or before.seq != source.seq - 1:
        return None
    return before if _text_of(before).rstrip().endswith(QUESTION_MARKS) else None


def _text_of(turn: Turn) -> str:
    return " ".join(part.text for part in turn.parts)


def _relevance(passage: Passage, search_terms: SearchTerms, own: float, likeness: float | None) -> float:
    """Return the share of the query that the passage covers, or its likeness, whichever is more; 0.0 for neither.

    The terms of its neighbours count half.
    """
    whole = sum(search_terms.weights.values())
    beside = search_terms.weight_in(passage.nearby_terms - passage.own_terms)
    share = (own + NEIGHBOUR_SHARE * beside) / whole if whole else 0.0
    return max(share, likeness) if likeness is not None and likeness >= LEAST_LIKENESS else share


def _weight(passage: Passage) -> float:
    source = passage.source
    weight = _KIND_WEIGHT[source_kind(source)]
    if isinstance(source, Turn):
        weight *= _TURN_WEIGHT[source.kind]
        if passage.text.rstrip().endswith(QUESTION_MARKS):
            weight *= QUESTION_WEIGHT
    return weight


def _named(name: str, words: frozenset[str]) -> bool:
    """Return whether the query has any word of this speaker's name that is longer than a letter."""
    return any(word in words for word in normalized_words(name) if len(word) > 1)


@dataclass(frozen=True, slots=True)
class _Statement:
    """One sentence of a turn, with what it says."""

    speaker_id: str
    meaning: Meaning


def _move_corrections_up(ranked: Sequence[_Ranked], search_terms: SearchTerms) -> None:
    """Find which turns correct which others, and give a correction the score of what it corrects."""
    turns = {each.ref: each for each in ranked if isinstance(each.passage.source, Turn)}
    stated = [each for each in turns.values() if _is_spoken(each.passage.source)][:_COMPARED]
    stated.sort(key=lambda each: (-each.passage.at, -each.passage.id))
    found = {each.ref: new for each in stated if (new := _latest(each, stated, search_terms, _replaces)) is not None}
    for old in turns.values():
        by = old.passage.replaced_by
        known = None if by is None else turns.get(TurnRef(old.passage.session_id, by))
        if known is not None and (old.ref not in found or known.passage.at > found[old.ref].passage.at):
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
        if old.superseded_by is None and (same := _latest(old, stated, search_terms, _restates)) is not None:
            # What took its place holds.
            holding = same if same.superseded_by is None else turns.get(same.superseded_by, same)
            holding.score = max(holding.score, old.score)
        if old.superseded_by is None and (seq := _taken_back_at(old, search_terms)) is not None:
            old.superseded_by, old.through = TurnRef(old.passage.session_id, seq), seq


def _is_spoken(source: object) -> bool:
    return isinstance(source, Turn) and source.kind is TurnKind.SPEECH


def _latest(
    old: _Ranked, stated: Sequence[_Ranked], search_terms: SearchTerms, judge: Callable[[_Statement, _Statement], bool]
) -> _Ranked | None:
    """Return the latest turn that says as much about the query as `old` and has a statement of which `judge` is true.

    `stated`: latest first. `judge` is given the later statement and the older one.
    """
    if not old.covered or old.covered < _LEAST_COVERED * sum(search_terms.weights.values()):
        return None
    for new in stated:
        if new.passage.at < old.passage.at:
            return None
        if new.covered < _AS_MUCH * old.covered or not _is_later(new, old):
            continue
        if any(judge(said, told) for told in old.statements(search_terms) for said in new.statements(search_terms)):
            return new
    return None


def _replaces(new: _Statement, old: _Statement) -> bool:
    return replaces(new.meaning, old.meaning, same_speaker=new.speaker_id == old.speaker_id)


def _restates(new: _Statement, old: _Statement) -> bool:
    """Return whether the same person says the same with other values, and does not say that the old ones are wrong."""
    one, other = new.meaning, old.meaning
    return (
        new.speaker_id == old.speaker_id
        and bool(one.topics)
        and (one.topics, one.names, one.negated) == (other.topics, other.names, other.negated)
        and bool(one.values - other.values and other.values - one.values)
    )


def _is_later(new: _Ranked, old: _Ranked) -> bool:
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
    question = _question_before(passage)
    asked = None if question is None or wanted.isdisjoint(terms(_text_of(question))) else meaning(_text_of(question))
    said = [(part.speaker_id, sentence) for part in source.parts for sentence in sentences(part.text)]
    if asked is None:
        # Reading the terms of each sentence takes time, and most turns have only one.
        if wanted.isdisjoint(passage.own_terms):
            return ()
        said = [each for each in said if len(said) == 1 or not wanted.isdisjoint(terms(each[1]))]
    found: list[_Statement] = []
    for speaker_id, sentence in said:
        told = meaning(sentence)
        if asked is not None and told.announces:
            told = replace(told, topics=told.topics | asked.topics, names=told.names | asked.names)
        if not told.asks:
            found.append(_Statement(speaker_id, told))
    return tuple(found)


def _taken_back_at(old: _Ranked, search_terms: SearchTerms) -> Seq | None:
    """Return the turn just after `old` in which the same person takes it back without repeating its subject."""
    told = old.statements(search_terms)
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


class _ShownText:
    """What earlier hits show already, so that nothing is shown twice."""

    def __init__(self) -> None:
        self._found: set[tuple[SessionId, int]] = set()
        self._texts: set[tuple[tuple[str, ...], str]] = set()

    def add(self, each: _Ranked) -> bool:
        """Add one passage and return True, or return False if an earlier hit shows it."""
        source, session = each.passage.source, each.passage.session_id
        words = (each.passage.speakers, " ".join(normalized_words(each.passage.text)))
        shown: Sequence[int] = range(source.start, source.end) if isinstance(source, Segment) else ()
        if isinstance(source, Turn) and not each.found_itself:
            # 'Haha.' was found for the words of its neighbour, whose hit shows it.
            shown = (source.seq - 1, source.seq + 1)
        if words in self._texts or any((session, seq) in self._found for seq in shown):
            return False
        self._texts.add(words)
        if isinstance(source, Turn):
            self._found.add((session, source.seq))
        return True
