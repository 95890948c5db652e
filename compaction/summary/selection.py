"""Selects the sentences of a summary of limited length: those that add most, weighted by how long they stay relevant.

Sentences are chosen greedily and deterministically. `ledger` makes the candidates and reserves a share for the newest.
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

# If two sentences share this much of their concepts, they say the same, and only one of them is chosen.
_SAME = 0.75
# At most this many sentences may differ only in names and numbers, for example a score called out every few minutes.
_ALIKE = 3


# Candidates are compared by identity, because two facts may have the same text.
@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """A sentence that may become part of the summary, with its worth."""

    sentence: RenderedSentence
    claim: FactClaim
    all: frozenset[str]
    age_rank: int  # position of its segment in the session
    fresh: float  # worth while it is new, per length
    lasting: float  # worth when it is old, per length

    @property
    def length(self) -> int:
        """Return the number of characters, including the space after the sentence."""
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
        # The last sentence needs no space after it, hence + 1.
        if self.length + candidate.length > self._room + 1 or self._said(candidate):
            return
        self.chosen.append(candidate)
        self.length += candidate.length
        self._covered |= candidate.all

    def add_best(self, candidates: Sequence[Candidate]) -> None:
        """Choose sentences as long as they fit. The sentences that add most are chosen first."""
        # The gain of a sentence only falls as other sentences are chosen. So if the top sentence still leads after its
        # gain is computed again, it is the best.
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
        # A concept that is in many facts is a constant subject of the session and adds little. fsum makes the sum
        # independent of the order of the set, which differs between processes.
        new = fsum(1.0 / (1.0 + log(self._concept_counts[concept])) for concept in candidate.all - self._covered)
        return candidate.lasting * (0.1 + new / len(candidate.all))

    def _said(self, candidate: Candidate) -> bool:
        return any(_same(candidate, each) for each in self.chosen)


def limit_similar(candidates: Iterable[Candidate]) -> Iterator[Candidate]:
    """Yield the candidates, but only a few of those that differ only in names and numbers."""
    yielded: Counter[frozenset[str]] = Counter()
    for each in candidates:
        yielded[each.claim.about.topics] += 1
        if yielded[each.claim.about.topics] <= _ALIKE:
            yield each


def rank_key(candidate: Candidate) -> tuple[float, int, tuple[str, ...]]:
    """Return the sort key: sentences that stay relevant longest come first, and among equal ones the newest."""
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
