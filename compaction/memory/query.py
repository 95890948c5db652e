"""Prepares a search for the index and combines the rankings that the index returns. Deterministic.

`parse_query` extracts the terms of a query, and `choose_terms` selects the terms to search for. `fuse_rankings`
combines the rankings by full text and by embeddings (Cormack, Clarke, Büttcher, SIGIR 2009). `correction_probes`
returns further searches for later corrections. `recall` then ranks the found passages.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from compaction.language.correction import asks
from compaction.language.terms import normalized_words, terms
from compaction.model import Turn, TurnKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from compaction.memory.passage import Passage, PassageId

# The constant of reciprocal rank fusion. With 60 the first ranks differ little, so both rankings matter.
RANK_CONSTANT = 60
# MAX_TERMS_READ terms of a query are counted in the index, and the rarest MAX_QUERY_TERMS of them are searched. A
# longer query is usually a pasted page, and its rare words say what the page is about.
MAX_TERMS_READ = 64
MAX_QUERY_TERMS = 24
# How many passages may be scored for one query. Scoring 8,000 takes about 10 ms. For very common terms, only the newest
# passages are searched.
MAX_SCORED = 8_000
# Embeddings count less than full text. They find other words for the same thing, but also passages that are only
# related.
FULL_TEXT_WEIGHT = 1.0
LIKENESS_WEIGHT = 0.6
_PROBE_TERMS = 2


@dataclass(frozen=True, slots=True)
class SearchQuery:
    """A parsed query. `terms`: its search terms, each once. `words`: all its words, including names and stop words."""

    text: str
    terms: tuple[str, ...]
    words: frozenset[str]


@dataclass(frozen=True, slots=True)
class SearchTerms:
    """The terms to search for, rarest first, and the weight of each term of the query (0.0 or more).

    `newest`: search only this many of the newest passages, because the terms are very common. None searches all
    passages.
    """

    terms: tuple[str, ...]
    weights: Mapping[str, float]
    newest: int | None = None

    def weight_in(self, spoken: frozenset[str]) -> float:
        """Return the total weight of the query's terms that are among `spoken`."""
        return sum(weight for term, weight in self.weights.items() if term in spoken)


def parse_query(query: str) -> SearchQuery:
    """Return the parsed query. It has no terms if the text has no meaningful word."""
    return SearchQuery(query, tuple(dict.fromkeys(terms(query)))[:MAX_TERMS_READ], frozenset(normalized_words(query)))


def choose_terms(query: SearchQuery, counts: Mapping[str, int], total: int) -> SearchTerms:
    """Return the terms to search for. `counts`: how many of the `total` passages have each term.

    The rarest terms are taken first, until too many passages would have to be scored. Terms that no passage contains
    are not searched but keep their weight, so that hits get a lower relevance.
    """
    weights = {term: math.log(1.0 + total / max(1, counts.get(term, 0))) for term in query.terms}
    ranked = sorted((term for term in query.terms if counts.get(term, 0) > 0), key=lambda term: (counts[term], term))
    chosen: list[str] = []
    scored = 0
    for term in ranked[:MAX_QUERY_TERMS]:
        scored += counts[term]
        if chosen and scored > MAX_SCORED:
            break
        chosen.append(term)
    newest = None
    if chosen and counts[chosen[0]] > MAX_SCORED:
        newest = max(1, total * MAX_SCORED // counts[chosen[0]])
    return SearchTerms(tuple(chosen), weights, newest)


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


@dataclass(frozen=True, slots=True)
class CorrectionProbe:
    """A search for corrections that rank too low to be found by the query itself.

    The search looks for turns after `after` (UTC epoch seconds) that contain all of `terms` and announce a change.
    """

    terms: tuple[str, ...]
    after: float


def correction_probes(
    search_terms: SearchTerms, passages: Sequence[Passage], scores: Mapping[PassageId, float]
) -> tuple[CorrectionProbe, ...]:
    """Return the searches for corrections of the best-ranked statement. Returns none if no passage is a statement.

    A correction contains the words that the question and the old statement share ('the gate code is 7702 now'), or the
    old value ('no longer the healer').
    """
    stated = [
        each
        for each in passages
        if isinstance(each.source, Turn) and each.source.kind is TurnKind.SPEECH and not asks(each.text)
    ]
    if not stated:
        return ()
    top = max(stated, key=lambda each: (scores.get(each.id, 0.0), each.id))
    subject = sorted(top.own_terms & search_terms.weights.keys(), key=lambda term: (-search_terms.weights[term], term))
    value = max(
        top.own_terms - search_terms.weights.keys(), key=lambda term: (term.isdigit(), len(term), term), default=None
    )
    wanted = (tuple(subject[:_PROBE_TERMS]), () if value is None else (value,))
    return tuple(CorrectionProbe(each, top.at) for each in wanted if each)
