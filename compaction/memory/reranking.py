"""Scores the passages that a search found by comparing them with its query. Pure.

`bot.memory.recall` finds passages by full text and by embeddings. Both rank well and differently, and neither compares
every word of the query with every word of a passage. `Comparison` does that: a word counts as far as the most similar
word of the passage is like it (late interaction; the counts by likeness are the kernels of K-NRM: Xiong, Dai, Callan,
Liu, Power, SIGIR 2017). What it sees of each passage is one row of numbers, and the score is their weighted sum.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

from compaction.language.terms import name_terms, normalized_words
from compaction.language.text import is_question
from compaction.model import SessionId, Turn

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from compaction.memory.passage import Passage, PassageId
    from compaction.memory.recall import SearchQuery, SearchTerms
    from compaction.ports import WordLikeness

# Pieces of words are equal from this cosine on, and this far from a kernel's middle they count 0.6.
_EQUAL = 0.985
_KERNEL_WIDTH = 0.1
_KERNELS = (0.3, 0.5, 0.7, 0.9)
# What a rank adds falls with it, as in the fusion of rankings. A passage that a ranking lacks has this rank.
_RANK_CONSTANT = 11
_UNRANKED = 80
# The features and their weights, fitted by `python -m benchmarks.memory.fit_reranking`.
WEIGHTS: Mapping[str, float] = {
    "terms": 2.60,
    "terms beside": 2.28,
    "said by whom it names": 1.60,
    "said by another": -1.67,
    "question": -0.80,
    "full text rank": 16.04,
    "full text rank beside": 10.20,
    "cosine": 5.27,
    "pairs of words": 0.79,
    "words alike 0.3": 4.63,
    "words alike 0.5": 2.74,
    "words alike 0.7": 0.97,
    "words alike 0.9": 0.93,
    "equal words": 0.27,
    "equal words beside": 2.59,
    "likeness of words": 7.36,
    "likeness of words beside": 0.52,
}


@dataclass(frozen=True)
class Comparison:
    """A query and the passages to compare it with. `full_text`: the ranking that found them, best first. `alike`: those
    that embeddings found, with the cosine.
    """

    text: str
    query: SearchQuery
    search_terms: SearchTerms
    passages: Sequence[Passage]
    full_text: Sequence[PassageId]
    alike: Sequence[tuple[PassageId, float]]

    @cached_property
    def texts(self) -> tuple[str, ...]:
        """Return the texts to compare with the query: the passages' and those beside them, each once."""
        return tuple(dict.fromkeys(text for each in self.passages for text in (each.text, *_beside(each))))

    @cached_property
    def unnamed(self) -> str:
        """Return the words of the query without the speakers' names; all, if it has no others. What somebody said
        rarely has their name.
        """
        names = {word for each in self.passages for name in each.speakers for word in normalized_words(name)}
        words = [
            word
            for word in self.text.split()
            if names.isdisjoint(each.removesuffix("'s") for each in normalized_words(word))
        ]
        return " ".join(words) or self.text

    def scores(self, likeness: Mapping[str, WordLikeness]) -> dict[PassageId, float]:
        """Return the score of each passage: the exponential of the weighted sum. `likeness`: of each of `texts`."""
        rows = zip(self.passages, self.features(likeness), strict=True)
        weights = tuple(WEIGHTS.values())
        sums = {
            passage.id: sum(value * weight for value, weight in zip(row, weights, strict=True)) for passage, row in rows
        }
        highest = max(sums.values(), default=0.0)
        return {passage_id: math.exp(total - highest) for passage_id, total in sums.items()}

    def features(self, likeness: Mapping[str, WordLikeness]) -> Iterator[tuple[float, ...]]:
        """Yield the features of each passage, in the order of `WEIGHTS`."""
        named = {term for terms in self._names.values() for term in terms} & set(self.query.terms)
        asked = {term: weight for term, weight in self.search_terms.weights.items() if term not in named}
        whole = sum(asked.values()) or 1.0
        pieces = self._piece_weights(likeness)
        worded = {passage_id: rank for rank, passage_id in enumerate(self.full_text)}
        cosines = dict(self.alike)
        least = min(cosines.values(), default=0.0)
        places = {_place(each): _at_rank(worded.get(each.id)) for each in self.passages}
        pairs = set(pairwise(normalized_words(self.text)))
        for each in self.passages:
            own = likeness[each.text]
            near = [max(cosines) for cosines in zip(own, *(likeness[text] for text in _beside(each)), strict=True)]
            words = normalized_words(each.text)
            is_of_named = any(not self._names[name].isdisjoint(named) for name in each.speakers)
            session, seq = _place(each)
            beside = (places.get((session, seq + step), 0.0) for step in (-1, 1)) if seq is not None else ()
            yield (
                sum(weight for term, weight in asked.items() if term in each.own_terms) / whole,
                sum(weight for term, weight in asked.items() if term in each.nearby_terms - each.own_terms) / whole,
                float(is_of_named),
                float(bool(named) and not is_of_named),
                float(is_question(each.text)),
                _at_rank(worded.get(each.id)),
                max(beside, default=0.0),
                cosines.get(each.id, least),
                math.log1p(len(pairs & set(pairwise(words)))),
                *(_weighed(pieces, (_nearness(cosine, middle) for cosine in own)) for middle in _KERNELS),
                _weighed(pieces, (cosine >= _EQUAL for cosine in own)),
                _weighed(pieces, (cosine >= _EQUAL for cosine in near)),
                _weighed(pieces, own),
                _weighed(pieces, near),
            )

    @cached_property
    def _names(self) -> dict[str, frozenset[str]]:
        names = {name for each in self.passages for name in each.speakers}
        return {name: frozenset(name_terms(name)) for name in names}

    def _piece_weights(self, likeness: Mapping[str, WordLikeness]) -> list[float]:
        """Return the weights of the query's pieces, 1.0 together: those that few of the passages have count most."""
        found = [likeness[each.text] for each in self.passages]
        having = (sum(cosine >= _EQUAL for cosine in of_piece) for of_piece in zip(*found, strict=True))
        weights = [math.log(1.0 + len(found) / (1.0 + count)) for count in having]
        return [weight / sum(weights) for weight in weights]


def _beside(passage: Passage) -> Iterator[str]:
    """Yield the texts of the turns just before and after a turn."""
    source = passage.source
    if isinstance(source, Turn):
        yield from (turn.text for turn in passage.around if abs(turn.seq - source.seq) == 1)


def _place(passage: Passage) -> tuple[SessionId, int | None]:
    return passage.session_id, passage.source.seq if isinstance(passage.source, Turn) else None


def _at_rank(rank: int | None) -> float:
    return 1.0 / (_RANK_CONSTANT + (_UNRANKED if rank is None else rank))


def _nearness(cosine: float, middle: float) -> float:
    return math.exp(-(((cosine - middle) / _KERNEL_WIDTH) ** 2) / 2.0)


def _weighed(pieces: Sequence[float], values: Iterable[float]) -> float:
    """Return the sum of a value of each piece of the query, by the weights of the pieces."""
    return sum(weight * value for weight, value in zip(pieces, values, strict=True))
