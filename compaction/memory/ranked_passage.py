"""A passage that a search found, and how much it has to do with the query: what it is, who said it, what it covers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from compaction.language.terms import normalized_words, terms
from compaction.language.text import QUESTION_MARKS
from compaction.memory.passage import PassageKind, source_kind
from compaction.model import Turn, TurnKind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from compaction.memory.passage import Passage, PassageId
    from compaction.memory.query import SearchQuery, SearchTerms
    from compaction.model import Seq, SessionId

# The weights were tuned on three of LoCoMo's conversations and judged on two others; retune with `roomtone bench
# memory --transcripts`.
SPEAKER_BOOST = 1.2
# A question rarely holds the answer, but a turn next to it may.
QUESTION_WEIGHT = 0.9
NEIGHBOUR_SHARE = 0.5
# What people asked the bot, and what it answered, comes after what they told.
ASKED_BOT_WEIGHT = 0.4
_KIND_WEIGHT = {PassageKind.TURN: 1.0, PassageKind.NOTE: 0.95, PassageKind.SEGMENT: 0.7}
_TURN_WEIGHT = {
    TurnKind.SPEECH: 1.0,
    TurnKind.TYPED: 1.0,
    TurnKind.ASSISTANT: ASKED_BOT_WEIGHT,
    TurnKind.MEMBERSHIP: 0.5,
    TurnKind.EFFECT: 0.5,
}
# A passage without a word of the query is a hit only if its embedding is so similar to the query's: cosine.
LEAST_LIKENESS = 0.3


@dataclass(frozen=True, slots=True)
class TurnRef:
    """One turn of one session."""

    session_id: SessionId
    seq: Seq


@dataclass(slots=True)
class RankedPassage:
    """A passage with its score, and what it corrects. `covered`: the weight of the query's terms in its own text and in
    the turn that it answers. `found_itself`: it was found for its own text, not only for a neighbour's. `answers`:
    the turn that must be shown with it.
    """

    passage: Passage
    ref: TurnRef | None
    score: float
    relevance: float
    likeness: float | None
    covered: float
    found_itself: bool = True
    superseded_by: TurnRef | None = None
    supersedes: list[TurnRef] = field(default_factory=list)
    answers: Turn | None = None

    @classmethod
    def of(
        cls,
        passage: Passage,
        query: SearchQuery,
        search_terms: SearchTerms,
        scores: Mapping[PassageId, float],
        likeness: Mapping[PassageId, float],
    ) -> RankedPassage:
        """Weigh a passage. `scores`: from the search; 0.0 without one. `likeness`: cosine with the query."""
        score = scores.get(passage.id, 0.0) * _weight(passage)
        if any(_named(name, query.words) for name in passage.speakers):
            score *= SPEAKER_BOOST
        alike = likeness.get(passage.id)
        own = search_terms.weight_in(passage.own_terms)
        question = answered_turn(passage)
        asked = frozenset(terms(question.text)) if question is not None else frozenset()
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


def answered_turn(passage: Passage) -> Turn | None:
    """Return the turn just before this one, if it asks something."""
    source = passage.source
    before = passage.around[0] if passage.around else None
    if not isinstance(source, Turn) or before is None or before.seq != source.seq - 1:
        return None
    return before if ends_in_question(before.text) else None


def ends_in_question(text: str) -> bool:
    return text.rstrip().endswith(QUESTION_MARKS)


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
        if ends_in_question(passage.text):
            weight *= ASKED_BOT_WEIGHT if _is_answered_by_bot(passage, source) else QUESTION_WEIGHT
    return weight


def _named(name: str, words: frozenset[str]) -> bool:
    """Return whether the query has any word of this speaker's name that is longer than a letter."""
    return any(word in words for word in normalized_words(name) if len(word) > 1)


def _is_answered_by_bot(passage: Passage, source: Turn) -> bool:
    return any(turn.kind is TurnKind.ASSISTANT and turn.answers == source.seq for turn in passage.around)
