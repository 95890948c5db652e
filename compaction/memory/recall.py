"""Ranks the passages that a search found. Deterministic.

`rank_hits` scores each passage by how much of the query it covers. People named in the query score higher, a correction
takes the rank of what it corrects, and nothing is shown twice. `bot.memory.recall` calls the index between the steps.
Source: design note 'summaries and recall', 'So build' 6.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from compaction.language.correction import AS_MUCH, asks, denies, replaces, takes_back
from compaction.language.terms import normalized_words, terms
from compaction.memory.passage import PassageKind, source_kind
from compaction.memory.passage_statements import statements_in_quote, statements_in_turn
from compaction.model import Note, Segment, Seq, Turn, TurnKind

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from compaction.language.correction import Statement
    from compaction.memory.passage import Passage, PassageId
    from compaction.memory.query import SearchQuery, SearchTerms
    from compaction.model import NoteId, SessionId

SPEAKER_BOOST = 1.35
# A question contains no answer, although its neighbouring turns may.
QUESTION_WEIGHT = 0.8
NEIGHBOUR_SHARE = 0.5
_KIND_WEIGHT = {PassageKind.TURN: 1.0, PassageKind.NOTE: 0.95, PassageKind.SEGMENT: 0.7}
_TURN_WEIGHT = {TurnKind.SPEECH: 1.0, TurnKind.ASSISTANT: 0.7, TurnKind.MEMBERSHIP: 0.5, TurnKind.EFFECT: 0.5}
_STALE_WEIGHT = 0.5
# Corrections are looked for only among this many of the best passages.
_COMPARED = 20
_ANSWERS_FROM = 0.25
# A hit shows the found turn with this many turns before and after it.
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
    limit: int,
) -> tuple[RecallHit, ...]:
    """Return at most `limit` hits, best first. A correction comes before what it corrects.

    `scores`: from `fuse_rankings`. A passage without a score can only act as a correction, and is returned only if it
    corrects another passage. `likeness`: cosine of each passage's embedding with the query's.
    """
    alike = likeness or {}
    weighed = {each.id: _Weighed.of(each, query, search_terms, scores, alike) for each in passages}
    _judge_corrections(sorted(weighed.values(), key=_order), search_terms)
    ranked = sorted((each for each in weighed.values() if each.score > 0.0), key=_order)
    speaking = {each.ref for each in ranked if each.speaks_of(search_terms)}
    stale = {each.ref for each in ranked if each.superseding is not None}
    answer: list[RecallHit] = []
    shown = _ShownText()
    for each in ranked:
        if len(answer) == limit:
            break
        if each.only_beside(search_terms, speaking):
            continue
        recalled = each.recalled(stale)
        if shown.add(recalled):
            answer.append(recalled)
    return tuple(answer)


@dataclass(slots=True)
class _Weighed:
    """A passage with its score and its corrections."""

    passage: Passage
    score: float
    relevance: float
    likeness: float | None
    # What the passage states about the query. None if the passage is not a person's turn.
    statement: Statement | None
    # All statements that a quote of the passage shows, including the answer after a question.
    claims: tuple[Statement, ...]
    superseding: TurnRef | None = None
    supersedes: list[TurnRef] | None = None
    # The quote must show the turns up to this seq, because an answer there corrects another turn.
    through: int = 0
    # The turn just after this one that takes it back, if that turn is not itself among the passages.
    taken_back_by: Turn | None = None

    @classmethod
    def of(
        cls,
        passage: Passage,
        query: SearchQuery,
        search_terms: SearchTerms,
        scores: Mapping[PassageId, float],
        likeness: Mapping[PassageId, float],
    ) -> _Weighed:
        relevance = _relevance(passage, search_terms)
        score = scores.get(passage.id, 0.0) * (0.5 + 0.5 * relevance) * _weight(passage)
        if any(_named(name, query.words) for name in passage.speakers):
            score *= SPEAKER_BOOST
        own = statements_in_turn(passage, passage.source)
        told = own[0] if own else None
        if len(own) > 1:
            # If several people speak in one turn, use the statement whose words are most about the query.
            told = max(own, key=lambda each: search_terms.weight_in(frozenset(terms(each.text))))
        return cls(passage, score, relevance, likeness.get(passage.id), told, statements_in_quote(passage, own))

    @property
    def known(self) -> Collection[TurnRef]:
        """Return the turns that this one replaces, and the turn that replaces this one."""
        return (*(self.supersedes or ()), *(() if self.superseding is None else (self.superseding,)))

    @property
    def ref(self) -> TurnRef | None:
        source = self.passage.source
        return TurnRef(self.passage.session_id, source.seq) if isinstance(source, Turn) else None

    def speaks_of(self, search_terms: SearchTerms) -> bool:
        """Return whether the passage's own text contains any term of the query."""
        return not self.passage.own_terms.isdisjoint(search_terms.weights)

    def only_beside(self, search_terms: SearchTerms, speaking: Collection[TurnRef | None]) -> bool:
        """Return whether the query matches only a neighbouring turn, and that neighbour is itself a hit.

        The neighbour's quote already shows this turn.
        """
        ref = self.ref
        if ref is None or self.speaks_of(search_terms) or not search_terms.weights or self.supersedes:
            return False
        return any(TurnRef(ref.session_id, Seq(ref.seq + step)) in speaking for step in (-1, 1))

    def recalled(self, stale: Collection[TurnRef | None]) -> RecallHit:
        """Return the passage as a hit. Neighbouring turns in `stale` are left out, because they were corrected."""
        source = self.passage.source
        turns: tuple[Turn, ...] = ()
        seq = seq_from = seq_to = None
        if isinstance(source, Turn):
            seq = source.seq
            taken_back = 0 if self.taken_back_by is None else self.taken_back_by.seq
            last = max(seq + _NEIGHBOURS, taken_back, self.through)
            within = (each for each in self.passage.around if seq - _NEIGHBOURS <= each.seq <= last)
            session = self.passage.session_id
            turns = tuple(
                each
                for each in within
                if each.seq == seq
                or TurnRef(session, each.seq) not in stale
                or TurnRef(session, each.seq) in self.known
            )
            turns = turns or (source,)
            seq_from, seq_to = turns[0].seq, turns[-1].seq
        elif isinstance(source, Segment):
            seq_from, seq_to = source.start, Seq(max(source.start, source.end - 1))
        by = self.superseding
        if by is None and self.taken_back_by is not None:
            by = TurnRef(self.passage.session_id, self.taken_back_by.seq)
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
            superseded_by=by,
            supersedes=tuple(self.supersedes or ()),
            note_id=source.id if isinstance(source, Note) else None,
        )


def _order(each: _Weighed) -> tuple[float, float, int]:
    return (-each.score, -each.passage.at, -each.passage.id)


def _relevance(passage: Passage, search_terms: SearchTerms) -> float:
    """Return the share of the query that the passage covers. Terms of neighbouring turns count half."""
    whole = sum(search_terms.weights.values())
    if whole <= 0.0:
        return 0.0
    own = search_terms.weight_in(passage.own_terms)
    return (own + NEIGHBOUR_SHARE * search_terms.weight_in(passage.nearby_terms - passage.own_terms)) / whole


def _weight(passage: Passage) -> float:
    source = passage.source
    weight = _KIND_WEIGHT[source_kind(source)]
    if isinstance(source, Turn):
        weight *= _TURN_WEIGHT[source.kind]
        if asks(passage.text):
            weight *= QUESTION_WEIGHT
    return weight


def _named(name: str, words: frozenset[str]) -> bool:
    """Return whether the query contains a word of this speaker's name. Words of one letter are ignored."""
    return any(word in words for word in normalized_words(name) if len(word) > 1)


@dataclass(frozen=True, slots=True)
class _Replacement:
    """The turn that replaces another one, and the passage whose quote shows it."""

    by: _Weighed
    ref: TurnRef
    at: float


@dataclass(frozen=True, slots=True)
class _Rival:
    """A statement that may replace others. Its precomputed terms rule out most pairs quickly."""

    by: _Weighed
    claim: Statement
    # All terms of the statement's quote, their weight in the query, and whether the quote denies something.
    spoken: frozenset[str]
    held: float
    denies: bool


def _judge_corrections(ranked: Sequence[_Weighed], search_terms: SearchTerms) -> None:
    """Find which turns correct which, and give each correction the rank of what it corrects."""
    turns = [each for each in ranked if isinstance(each.passage.source, Turn)]
    compared = turns[:_COMPARED] + [each for each in turns[_COMPARED:] if each.score == 0.0]
    by_ref = {each.ref: each for each in turns}
    rivals = _rivals(compared, search_terms)
    replaced: dict[PassageId, _Replacement] = {}
    for old in compared:
        new = _replacement(old, rivals, by_ref, search_terms)
        if new is not None:
            replaced[old.passage.id] = new
    # Newest first, so that in a chain of corrections each old value points to the current one.
    for old in sorted((each for each in compared if each.passage.id in replaced), key=lambda each: -each.passage.at):
        new = replaced[old.passage.id]
        while (later := replaced.get(new.by.passage.id)) is not None and later.at > new.at:
            new = later
        assert old.ref is not None, "only turns are compared"
        new.by.score = max(new.by.score, old.score)
        new.by.relevance = max(new.by.relevance, old.relevance)
        new.by.supersedes = [*(new.by.supersedes or ()), old.ref]
        new.by.through = max(new.by.through, new.ref.seq)
        old.superseding = new.ref
        old.score *= _STALE_WEIGHT


def _rivals(compared: Sequence[_Weighed], search_terms: SearchTerms) -> list[_Rival]:
    """Return the statements that may replace others, latest first. Statements of the same time are ordered by score."""
    found: list[_Rival] = []
    for each in compared:
        if each.claims:
            spoken = each.passage.own_terms | each.passage.nearby_terms
            denying = any(denies(claim.text) for claim in each.claims)
            held = search_terms.weight_in(spoken)
            found += [_Rival(each, claim, spoken, held, denying) for claim in each.claims]
    return sorted(found, key=lambda each: (-each.claim.at, -each.by.score, -each.by.passage.id))


def _replacement(
    old: _Weighed, rivals: Sequence[_Rival], by_ref: Mapping[TurnRef | None, _Weighed], search_terms: SearchTerms
) -> _Replacement | None:
    """Return the latest correction of `old`, or None. Sets `old.taken_back_by` if one of the next turns takes `old`
    back.
    """
    passage, told = old.passage, old.statement
    if told is None or asks(told.text):
        return None
    if old.relevance < _ANSWERS_FROM and passage.replaced_by is None and old.likeness is None:
        # The passage covers too little of the query to be an outdated answer to it.
        return None
    found: list[_Replacement] = []
    latest = _latest(old, told, rivals, search_terms)
    if latest is not None:
        found.append(latest)
    if passage.replaced_by is not None:
        ref = TurnRef(passage.session_id, passage.replaced_by)
        folded_in = by_ref.get(ref)
        found += [_Replacement(folded_in, ref, folded_in.passage.at)] if folded_in is not None else []
    for turn in passage.around:
        if turn.seq > told.seq and any(takes_back(later, told) for later in statements_in_turn(passage, turn)):
            ref = TurnRef(passage.session_id, turn.seq)
            known = by_ref.get(ref)
            if known is not None:
                found.append(_Replacement(known, ref, turn.started_at))
            else:
                old.taken_back_by = turn
    return max(found, key=lambda each: (each.at, each.by.score, each.by.passage.id), default=None)


def _latest(old: _Weighed, told: Statement, rivals: Sequence[_Rival], search_terms: SearchTerms) -> _Replacement | None:
    """Return the latest of `rivals` that gives another value for what `old` states, or None."""
    least = AS_MUCH * search_terms.weight_in(old.passage.own_terms)
    for rival in rivals:
        claim = rival.claim
        if claim.at < told.at:
            return None
        if rival.by is old or rival.spoken.isdisjoint(old.passage.own_terms):
            continue
        if (rival.held >= least or rival.denies) and replaces(claim, told, asked=search_terms.weights):
            return _Replacement(rival.by, TurnRef(rival.by.passage.session_id, Seq(claim.seq)), claim.at)
    return None


class _ShownText:
    """Remembers what earlier hits already show, so that nothing is shown twice."""

    def __init__(self) -> None:
        self._turns: set[tuple[SessionId, int]] = set()
        self._found: set[tuple[SessionId, int]] = set()
        self._texts: set[tuple[str, str]] = set()

    def add(self, recalled: RecallHit) -> bool:
        """Add a hit and return True. Returns False if earlier hits already show its words."""
        words = (recalled.speaker, " ".join(normalized_words(recalled.text)))
        if words in self._texts:
            return False
        session = recalled.session_id
        if recalled.seq is not None and (session, recalled.seq) in self._turns:
            return False
        if recalled.kind is PassageKind.SEGMENT and recalled.seq_from is not None and recalled.seq_to is not None:
            covered = range(recalled.seq_from, recalled.seq_to + 1)
            if any((session, seq) in self._found for seq in covered):
                return False
        self._texts.add(words)
        self._turns.update((session, turn.seq) for turn in recalled.turns)
        if recalled.seq is not None:
            self._found.add((session, recalled.seq))
        return True
