"""Prepares a search for the index and combines the rankings that the index returns. Deterministic.

`parse_query` extracts the terms of a query, and `choose_terms` selects the terms to search for. `fuse_rankings`
combines the rankings by full text and by embeddings (Cormack, Clarke, Büttcher, SIGIR 2009). `recall` then ranks the
found passages.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from compaction.language.terms import normalized_words, query_terms

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from compaction.memory.passage import PassageId

# The constant of reciprocal rank fusion. With the usual 60 the first ranks hardly differ, and passages that are
# somewhat good in both rankings come before the best of one. Tuned on LoCoMo, as is `LIKENESS_WEIGHT`.
RANK_CONSTANT = 10
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
    found = tuple(dict.fromkeys(query_terms(query)))[:MAX_TERMS_READ]
    return SearchQuery(query, found, frozenset(normalized_words(query)))


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
