"""Prepares a search, and ranks the passages that it found: corrections before what they correct, no turn shown twice.

`parse_query` and `choose_terms` select the terms to search for, and `fuse_rankings` combines the rankings of the index
by full text and by embeddings (Cormack, Clarke, Büttcher, SIGIR 2009). Then `rank_hits` weighs each passage by what it
is and who said it. Which turn corrects which is known from the facts that closed earlier ones (`Passage.replaced_by`).
`bot.memory.recall` queries the index between these steps. Deterministic.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from compaction.language.terms import normalized_words, query_terms
from compaction.language.text import UNSPACED, clauses, is_question
from compaction.memory.passage import (
    MOST_SCORED,
    NEIGHBOUR_SHARE,
    Passage,
    PassageId,
    PassageKind,
    source_kind,
    source_parts,
)
from compaction.model import SAID, Note, NoteId, Segment, Seq, SessionId, Turn, TurnKind, TurnPart

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence


# The constant of reciprocal rank fusion. With the usual 60 the first ranks hardly differ, and passages that are
# somewhat good in both rankings come before the best of one. Tuned on LoCoMo, as is `LIKENESS_WEIGHT`.
RANK_CONSTANT = 10
# MAX_TERMS_READ terms of a query are counted in the index, and the rarest MAX_QUERY_TERMS of them are searched. A
# longer query is usually a pasted page, and its rare words say what the page is about.
MAX_TERMS_READ = 64
MAX_QUERY_TERMS = 24
# A hit is relevant for what it has of the weightiest clause of a question, and of its rarest terms, so many of them:
# people say much around what they ask.
MOST_ASKED = 6
# Embeddings count less than full text. They find other words for the same thing, but also passages that are only
# related.
FULL_TEXT_WEIGHT = 1.0
LIKENESS_WEIGHT = 0.6
# A hit shows this many turns before and after the turn that was found.
_NEIGHBOURS = 1
# The weights were tuned on three of LoCoMo's conversations and judged on two others; retune with `roomtone bench
# memory --transcripts`.
SPEAKER_BOOST = 1.2
# A question rarely holds the answer, but a turn next to it may.
QUESTION_WEIGHT = 0.9
# A turn in which something happened and nobody said anything.
EVENT_WEIGHT = 0.5
_KIND_WEIGHT = {PassageKind.TURN: 1.0, PassageKind.NOTE: 0.95, PassageKind.SEGMENT: 0.7}
# Of the pairs of a script without spaces every second lies across two words and is in no passage, whatever it is about.
ABSENT_PAIR_SHARE = 0.5
# What people told the bot is found if it has more than this share of the query: 'remember that the code is 4411'.
LEAST_TOLD = 0.5
# A passage without a word of the query is a hit only if its embedding is so similar to the query's: cosine. Of the
# pairs of `benchmarks/memory/other_languages.toml` that are not apart, 88 % of the answers are, and 2 % of other turns.
LEAST_LIKENESS = 0.2


@dataclass(frozen=True, slots=True)
class SearchQuery:
    """A parsed query. `terms`: its search terms, each once. `words`: all its words, including names and stop words.
    `clauses`: the terms of each of its clauses.
    """

    terms: tuple[str, ...]
    words: frozenset[str]
    clauses: tuple[frozenset[str], ...] = ()


@dataclass(frozen=True, slots=True)
class SearchTerms:
    """The terms to search for, rarest first, and the weight of each term of the query (0.0 or more). `clauses`: as in
    `SearchQuery`.
    """

    terms: tuple[str, ...]
    weights: Mapping[str, float]
    clauses: tuple[frozenset[str], ...] = ()

    @property
    def asked(self) -> float:
        """Return the weight of what is asked: the rarest terms of the weightiest clause."""
        weighed = (sorted(self.weights[term] for term in clause) for clause in self.clauses or (self.weights,))
        return max((sum(each[-MOST_ASKED:]) for each in weighed), default=0.0)

    @property
    def searched(self) -> Mapping[str, float]:
        """Return the terms to search for, with their weights."""
        return {term: self.weights[term] for term in self.terms}

    def weight_in(self, spoken: frozenset[str]) -> float:
        """Return the total weight of the query's terms that are among `spoken`."""
        return sum(weight for term, weight in self.weights.items() if term in spoken)


@dataclass(frozen=True, slots=True)
class TurnRef:
    """One turn of one session."""

    session_id: SessionId
    seq: Seq


@dataclass(frozen=True, slots=True)
class RecallHit:
    """One search hit, word for word. `at`: UTC epoch seconds.

    `seq`: the turn that was found. `turns`: that turn with its neighbours, `seq_from <= seq <= seq_to`. A segment has a
    range but no turns; a note has neither. `relevance`: the share of what is asked that the hit covers (0.0-1.0).
    `likeness`: cosine of the embeddings, or None if they were not compared. `superseded_by`: the later turn that
    corrects this one. `supersedes`: the turns that this one corrects. `parts`: who says which words of a turn or note.
    `is_with_bot`: see `Turn`. `around`: the turn with those that may lead to it, and a few after it.
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
    parts: tuple[TurnPart, ...] = ()
    is_with_bot: bool = False
    around: tuple[Turn, ...] = ()


def parse_query(query: str) -> SearchQuery:
    """Return the parsed query. It has no terms if the text has no meaningful word."""
    found = tuple(dict.fromkeys(query_terms(query)))[:MAX_TERMS_READ]
    # A short clause may not tell its language, so its own terms count as far as the whole has them.
    parted = (frozenset(query_terms(clause)).intersection(found) for clause in clauses(query))
    return SearchQuery(found, frozenset(normalized_words(query)), tuple(filter(None, parted)))


def choose_terms(query: SearchQuery, counts: Mapping[str, int], total: int) -> SearchTerms:
    """Return the terms to search for. `counts`: how many of the `total` passages have each term.

    The rarest terms are taken first, until too many passages would have to be scored. Terms that no passage contains
    are not searched but keep their weight, so that hits get a lower relevance.
    """
    weights = {
        term: math.log(1.0 + total / max(1, counts.get(term, 0)))
        * (ABSENT_PAIR_SHARE if term not in counts and UNSPACED.match(term) else 1.0)
        for term in query.terms
    }
    ranked = sorted((term for term in query.terms if counts.get(term, 0) > 0), key=lambda term: (counts[term], term))
    chosen: list[str] = []
    scored = 0
    for term in ranked[:MAX_QUERY_TERMS]:
        scored += counts[term]
        if chosen and scored > MOST_SCORED:
            break
        chosen.append(term)
    return SearchTerms(tuple(chosen), weights, query.clauses)


def fuse_rankings(rankings: Iterable[tuple[float, Sequence[PassageId]]]) -> dict[PassageId, float]:
    """Return the score of each passage from several weighted rankings. Each ranking is best first.

    If a passage is repeated within a ranking, only its first place counts.
    """
    scores: dict[PassageId, float] = {}
    for weight, ranking in rankings:
        for rank, passage_id in enumerate(dict.fromkeys(ranking)):
            scores[passage_id] = scores.get(passage_id, 0.0) + weight / (RANK_CONSTANT + 1 + rank)
    return scores


def top_passages(scores: Mapping[PassageId, float], limit: int) -> tuple[PassageId, ...]:
    """Return the best `limit` passages. Among equal scores, the newest passage comes first."""
    return tuple(sorted(scores, key=lambda each: (-scores[each], -each))[:limit])


def rank_hits(
    query: SearchQuery,
    search_terms: SearchTerms,
    passages: Iterable[Passage],
    scores: Mapping[PassageId, float],
    *,
    likeness: Mapping[PassageId, float] | None = None,
    in_view: tuple[SessionId, Seq] | None = None,
    with_bot: bool = False,
    limit: int,
) -> tuple[RecallHit, ...]:
    """Return at most `limit` hits, best first, a correction before what it corrects.

    What was said to the bot, and by it, comes last. Without `with_bot` only statements to the bot are among it, which
    have most of the query.

    `scores`: from `fuse_rankings`. A passage without a score may only correct another one, and is returned only if it
    does. `likeness`: cosine of each passage's embedding with the query's. `in_view`: turns of this session from this
    seq on may correct others, but are not returned. A query without terms or embedding keeps the order of the scores.
    """
    alike = likeness or {}
    ranked = [_RankedPassage.of(each, query, search_terms, scores, alike) for each in passages]
    if search_terms.weights or alike:
        ranked = [each for each in ranked if each.relevance > 0.0 or each.score == 0.0]
        _move_corrections_up(ranked)
        _join_questions(ranked, in_view)
        for each in ranked:
            source = each.passage.source
            each.last = isinstance(source, Turn) and source.is_with_bot and not each.supersedes
        ranked = [each for each in ranked if with_bot or not each.last or each.is_told]
    stale = {each.ref for each in ranked if each.superseded_by is not None}
    found = [each for each in ranked if each.score > 0.0 and not each.passage.is_in(in_view)]
    chosen = _shown_once(sorted(found, key=lambda each: (each.last, -each.score, -each.passage.at, -each.passage.id)))[
        :limit
    ]
    # Each turn is shown once: by the hit that found it, else by its best neighbour.
    taken = {each.ref for each in chosen}
    hits: list[RecallHit] = []
    for each in chosen:
        hit = _hit(each, taken | stale)
        taken.update(TurnRef(hit.session_id, turn.seq) for turn in hit.turns)
        hits.append(hit)
    return tuple(hits)


def _move_corrections_up(ranked: Sequence[_RankedPassage]) -> None:
    """Mark the turns that a later one corrects, and give the correction the better score of both. A question is
    answered, not corrected, so it is not marked.
    """
    turns = {each.ref: each for each in ranked if isinstance(each.passage.source, Turn)}
    # From the oldest on, so that the last value of a chain gets the best score of all.
    for old in sorted(turns.values(), key=lambda each: (each.passage.at, each.passage.id)):
        by = old.passage.replaced_by
        new = None if by is None else turns.get(TurnRef(old.passage.session_id, by))
        if new is None:
            continue
        new.score, new.relevance = max(new.score, old.score), max(new.relevance, old.relevance)
        if not is_question(old.passage.text):
            old.superseded_by = new.ref
            if old.ref is not None:
                new.supersedes.append(old.ref)


def _join_questions(ranked: Sequence[_RankedPassage], in_view: tuple[SessionId, Seq] | None) -> None:
    """Have a correction that answers a question show the question, at the better of both places.

    'No, Sunday now.' alone tells nothing, and the question alone names the old value.
    """
    turns = {each.ref: each for each in ranked}
    for each in ranked:
        asked = _answered_turn(each.passage)
        if asked is None or not each.supersedes or is_question(each.passage.text) or each.passage.is_in(in_view):
            continue
        each.answers = asked
        if (question := turns.get(TurnRef(each.passage.session_id, asked.seq))) is not None:
            each.score, question.score = max(each.score, question.score), 0.0


def _hit(ranked: _RankedPassage, elsewhere: Collection[TurnRef | None]) -> RecallHit:
    """Return the hit. Neighbours in `elsewhere` are left out: other hits show them, or they were corrected."""
    passage, source = ranked.passage, ranked.passage.source
    turns: tuple[Turn, ...] = ()
    seq = seq_from = seq_to = None
    if isinstance(source, Turn):
        seq = source.seq
        asked = None if ranked.answers is None else ranked.answers.seq
        turns = tuple(
            each
            for each in passage.around or (source,)
            if abs(each.seq - seq) <= _NEIGHBOURS
            and (each.seq in (seq, asked) or TurnRef(passage.session_id, each.seq) not in elsewhere)
        )
        seq_from, seq_to = turns[0].seq, turns[-1].seq
    elif isinstance(source, Segment):
        seq_from, seq_to = source.start, Seq(max(source.start, source.end - 1))
    return RecallHit(
        passage_id=passage.id,
        kind=source_kind(source),
        session_id=passage.session_id,
        seq=seq,
        seq_from=seq_from,
        seq_to=seq_to,
        turns=turns,
        speaker=", ".join(passage.speakers),
        at=passage.at,
        text=passage.text,
        score=ranked.score,
        relevance=ranked.relevance,
        likeness=ranked.likeness,
        turn_kind=source.kind if isinstance(source, Turn) else None,
        superseded_by=ranked.superseded_by,
        supersedes=tuple(ranked.supersedes),
        note_id=source.id if isinstance(source, Note) else None,
        parts=source_parts(source),
        is_with_bot=isinstance(source, Turn) and source.is_with_bot,
        around=passage.around,
    )


def _shown_once(ranked: Iterable[_RankedPassage]) -> list[_RankedPassage]:
    """Return the passages, best first, without those that an earlier one shows already."""
    chosen: list[_RankedPassage] = []
    found: set[tuple[SessionId, int]] = set()
    texts: set[tuple[tuple[str, ...], str]] = set()
    for each in ranked:
        source, session = each.passage.source, each.passage.session_id
        asked = "" if each.answers is None else each.answers.text
        words = (each.passage.speakers, " ".join(normalized_words(f"{asked} {each.passage.text}")))
        shown: Sequence[int] = range(source.start, source.end) if isinstance(source, Segment) else ()
        if isinstance(source, Turn) and not each.found_itself:
            # 'Haha.' was found for the words of its neighbour, whose hit shows it.
            shown = (source.seq - 1, source.seq + 1)
        if words in texts or any((session, seq) in found for seq in shown):
            continue
        chosen.append(each)
        texts.add(words)
        if isinstance(source, Turn):
            found.add((session, source.seq))
    return chosen


@dataclass(slots=True)
class _RankedPassage:
    """A passage with its score, and what it corrects. `found_itself`: it was found for its own text, not only for a
    neighbour's. `is_told`: somebody states most of what is asked. `answers`: the turn that must be shown with it.
    `last`: it comes after what people said among themselves.
    """

    passage: Passage
    ref: TurnRef | None
    score: float
    relevance: float
    likeness: float | None
    found_itself: bool
    is_told: bool
    superseded_by: TurnRef | None = None
    supersedes: list[TurnRef] = field(default_factory=list)
    answers: Turn | None = None
    last: bool = False

    @classmethod
    def of(
        cls,
        passage: Passage,
        query: SearchQuery,
        search_terms: SearchTerms,
        scores: Mapping[PassageId, float],
        likeness: Mapping[PassageId, float],
    ) -> _RankedPassage:
        """Weigh a passage. `scores`: from the search; 0.0 without one. `likeness`: cosine with the query."""
        score = scores.get(passage.id, 0.0) * _weight(passage)
        named = (word for name in passage.speakers for word in normalized_words(name) if len(word) > 1)
        if not query.words.isdisjoint(named):
            score *= SPEAKER_BOOST
        alike = likeness.get(passage.id)
        own = search_terms.weight_in(passage.own_terms)
        source = passage.source
        return cls(
            passage,
            TurnRef(passage.session_id, source.seq) if isinstance(source, Turn) else None,
            score,
            _relevance(passage, search_terms, own, alike),
            alike,
            own > 0.0 or _answered_turn(passage) is not None or (alike is not None and alike >= LEAST_LIKENESS),
            isinstance(source, Turn)
            and source.kind in SAID
            and not is_question(passage.text)
            and own > LEAST_TOLD * search_terms.asked,
        )


def _answered_turn(passage: Passage) -> Turn | None:
    """Return the turn just before this one, if it asks something."""
    source = passage.source
    before = passage.around[0] if passage.around else None
    if not isinstance(source, Turn) or before is None or before.seq != source.seq - 1:
        return None
    return before if is_question(before.text) else None


def _relevance(passage: Passage, search_terms: SearchTerms, own: float, likeness: float | None) -> float:
    """Return the share of what is asked that the passage covers, or its likeness, whichever is more; 0.0 for neither.

    The terms of its neighbours count half.
    """
    asked = search_terms.asked
    beside = search_terms.weight_in(passage.nearby_terms - passage.own_terms)
    share = min(1.0, (own + NEIGHBOUR_SHARE * beside) / asked) if asked else 0.0
    return max(share, likeness) if likeness is not None and likeness >= LEAST_LIKENESS else share


def _weight(passage: Passage) -> float:
    source = passage.source
    weight = _KIND_WEIGHT[source_kind(source)]
    if isinstance(source, Turn):
        weight *= EVENT_WEIGHT if source.kind in {TurnKind.MEMBERSHIP, TurnKind.EFFECT} else 1.0
        weight *= QUESTION_WEIGHT if is_question(passage.text) else 1.0
    return weight
