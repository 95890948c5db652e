"""What a search asks the index for, and how rankings become one.

`parse_query` makes terms of the query and `choose_terms` takes the telling ones. `fuse_rankings` joins the rankings by
full text and by embeddings, and `correction_probes` says which later corrections to look for. `recall` ranks the
passages themselves. Deterministic. Source of the fusion: Cormack, Clarke, Büttcher (SIGIR 2009).
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

# The constant of reciprocal rank fusion: with 60 the first ranks differ little and both rankings are heard.
RANK_CONSTANT = 60
# Terms of a query that are counted, and the rarest of them that are searched: more is a pasted page, and its rare
# words tell what it is about.
MAX_TERMS_READ = 64
MAX_QUERY_TERMS = 24
# So many passages may be scored for one query: 8,000 cost about 10 ms. What nearly everybody says finds only the
# newest part of what was said.
MAX_SCORED = 8_000
# The likeness of embeddings finds other words for the same thing, and much that is merely of that kind.
FULL_TEXT_WEIGHT = 1.0
LIKENESS_WEIGHT = 0.6
_PROBE_TERMS = 2


@dataclass(frozen=True, slots=True)
class SearchQuery:
    """What is searched for. `terms` are without repetition; `words` every word of it, names among them."""

    text: str
    terms: tuple[str, ...]
    words: frozenset[str]


@dataclass(frozen=True, slots=True)
class SearchTerms:
    """The terms that are searched, rarest first, and what each term of the query weighs (0.0 and more).

    `newest`: only so many of the newest passages are looked at, None for all: the terms are too common for more.
    """

    terms: tuple[str, ...]
    weights: Mapping[str, float]
    newest: int | None = None

    def weight_in(self, spoken: frozenset[str]) -> float:
        """Return the weight of what these terms speak of of the query."""
        return sum(weight for term, weight in self.weights.items() if term in spoken)


def parse_query(query: str) -> SearchQuery:
    """Return what is searched for; a query without any word has no terms."""
    return SearchQuery(query, tuple(dict.fromkeys(terms(query)))[:MAX_TERMS_READ], frozenset(normalized_words(query)))


def choose_terms(asked: SearchQuery, counts: Mapping[str, int], total: int) -> SearchTerms:
    """Return which terms are worth searching. `counts`: how many passages have each term, of `total`.

    The rarest first, as long as not too many passages have to be scored for them; terms that nobody used are left
    out, and still weigh: what is not there is missing.
    """
    weights = {term: math.log(1.0 + total / max(1, counts.get(term, 0))) for term in asked.terms}
    ranked = sorted((term for term in asked.terms if counts.get(term, 0) > 0), key=lambda term: (counts[term], term))
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
    """Return each passage's score from rankings, given with their weights, best first; later repetitions in one
    ranking count for nothing."""
    scores: dict[PassageId, float] = {}
    for weight, ranking in rankings:
        for rank, passage_id in enumerate(dict.fromkeys(ranking)):
            scores[passage_id] = scores.get(passage_id, 0.0) + weight / (RANK_CONSTANT + 1 + rank)
    return scores


def top_passages(scores: Mapping[PassageId, float], limit: int) -> tuple[PassageId, ...]:
    """Return the best passages, of equal ones the newest first."""
    return tuple(sorted(scores, key=lambda each: (-scores[each], -each))[:limit])


@dataclass(frozen=True, slots=True)
class CorrectionProbe:
    """What to look for to find corrections that stand too far down a ranking: turns said after `after` (epoch seconds)
    that speak of all of `terms` and announce a change."""

    terms: tuple[str, ...]
    after: float


def correction_probes(
    choice: SearchTerms, passages: Sequence[Passage], scores: Mapping[PassageId, float]
) -> tuple[CorrectionProbe, ...]:
    """Return what corrections of the best statement would speak of; none when nothing was stated.

    A correction names what it corrects: by the words that question and old statement share ('the gate code is 7702
    now'), or by what the old one says ('no longer the healer').
    """
    stated = [
        each
        for each in passages
        if isinstance(each.source, Turn) and each.source.kind is TurnKind.SPEECH and not asks(each.text)
    ]
    if not stated:
        return ()
    top = max(stated, key=lambda each: (scores.get(each.id, 0.0), each.id))
    subject = sorted(top.own_terms & choice.weights.keys(), key=lambda term: (-choice.weights[term], term))
    value = max(top.own_terms - choice.weights.keys(), key=lambda term: (term.isdigit(), len(term), term), default=None)
    wanted = (tuple(subject[:_PROBE_TERMS]), () if value is None else (value,))
    return tuple(CorrectionProbe(each, top.at) for each in wanted if each)
