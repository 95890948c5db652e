"""Selects the sentences of a summary of limited length: those that add most, weighted by how long they stay relevant.

Greedy and deterministic. `ledger` makes the candidates and reserves a share for the newest.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from math import fsum, log
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from compaction.language.claims import FactClaim
    from compaction.model import RenderedSentence

# Two sentences that share this much of their concepts say the same; the newer one stays.
_SAME = 0.75
# So many sentences may differ in names and numbers alone, such as a score called out every few minutes.
_ALIKE = 3


# Compared by identity, because two facts may have the same text.
@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """A sentence that the summary may take, and its worth."""

    sentence: RenderedSentence
    claim: FactClaim
    all: frozenset[str]
    age_rank: int  # position of its segment in the session
    fresh: float  # worth while it is new, per length
    lasting: float  # worth when it is old, per length

    @property
    def length(self) -> int:
        """Return its characters, with the space after it."""
        return len(self.sentence.text) + 1


class SentenceSelection:
    """The sentences chosen so far, within `max_chars`. `concept_counts`: how many facts mention each concept."""

    def __init__(self, max_chars: int, concept_counts: Mapping[str, int]) -> None:
        self._concept_counts = concept_counts
        self.chosen: list[Candidate] = []
        self.length = 0
        self._room = max_chars
        self._covered: set[str] = set()

    def add(self, candidate: Candidate) -> None:
        """Choose one sentence if it fits and says something new."""
        # Joined sentences need one space less than one each.
        if self.length + candidate.length > self._room + 1 or self._said(candidate):
            return
        self.chosen.append(candidate)
        self.length += candidate.length
        self._covered |= candidate.all

    def add_best(self, candidates: Sequence[Candidate]) -> None:
        """Choose sentences while they fit, first those that add most."""
        # Gains only shrink as sentences are chosen, so one that still leads after being computed again is the best.
        left = [(-self._gain(each), -each.age_rank, index) for index, each in enumerate(candidates)]
        heapify(left)
        while left:
            gain, age, index = heappop(left)
            best = candidates[index]
            if best in self.chosen or self.length + best.length > self._room + 1:
                continue
            now = -self._gain(best)
            if now > gain:
                heappush(left, (now, age, index))
            else:
                self.add(best)

    def _gain(self, candidate: Candidate) -> float:
        if not candidate.all:
            return 0.0
        # A concept of every other fact is the session's constant subject and says little. fsum, because the order of a
        # set differs between processes and the summary must not.
        new = fsum(1.0 / (1.0 + log(self._concept_counts[concept])) for concept in candidate.all - self._covered)
        return candidate.lasting * (0.1 + new / len(candidate.all))

    def _said(self, candidate: Candidate) -> bool:
        return any(_same(candidate, each) for each in self.chosen)


def limit_similar(candidates: Iterable[Candidate]) -> Iterator[Candidate]:
    """Yield the candidates, only a few of those that differ in names and numbers alone."""
    yielded: Counter[frozenset[str]] = Counter()
    for each in candidates:
        yielded[each.claim.about.topics] += 1
        if yielded[each.claim.about.topics] <= _ALIKE:
            yield each


def rank_key(candidate: Candidate) -> tuple[float, int, tuple[str, ...]]:
    """Return the sort key: those that stay relevant longest first, of equal ones the newest."""
    return (-candidate.lasting, -candidate.age_rank, candidate.sentence.refs)


def _same(one: Candidate, other: Candidate) -> bool:
    if one.sentence.text == other.sentence.text:
        return True
    union = one.all | other.all
    return (
        bool(union)
        and one.claim.about.values == other.claim.about.values
        and len(one.all & other.all) / len(union) >= _SAME
    )
