"""Which sentences a summary of limited length takes: those that add most to what it says already, for what they last.

Greedy, and deterministic. What the candidates are, and how much of the room the newest get, is `rendering`'s.
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

# Two sentences that share this much of what they are about say the same; the newer one stays.
_SAME = 0.75
# So many sentences may differ in names and numbers alone: a score called out every few minutes is one theme.
_ALIKE = 3


# Compared by identity: two facts may say the same, and they are two.
@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """A sentence that a summary could say, and what it would be worth."""

    sentence: RenderedSentence
    claim: FactClaim
    all: frozenset[str]
    age_rank: int  # position of its segment in the session
    fresh: float  # worth while it is new, per length
    lasting: float  # worth when it is old, per length

    @property
    def length(self) -> int:
        """Return the characters it takes, with the space after it."""
        return len(self.sentence.text) + 1


class SentenceSelection:
    """Sentences chosen so far, within the room that there is."""

    def __init__(self, max_chars: int, concept_counts: Mapping[str, int]) -> None:
        self._concept_counts = concept_counts
        self.chosen: list[Candidate] = []
        self.length = 0
        self._room = max_chars
        self._covered: set[str] = set()

    def add(self, candidate: Candidate) -> None:
        """Take one sentence if it fits and says something new."""
        # Joined sentences need one space less than one each.
        if self.length + candidate.length > self._room + 1 or self._said(candidate):
            return
        self.chosen.append(candidate)
        self.length += candidate.length
        self._covered |= candidate.all

    def add_best(self, candidates: Sequence[Candidate]) -> None:
        """Take sentences while they fit, those first that add most to what is said already."""
        # Gains only shrink while more is chosen, so one that still leads after being worked out again is the best.
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
        # What every other fact speaks of is what the session always is about, and tells little. fsum: the order of
        # a set differs from process to process, and the summary must not.
        new = fsum(1.0 / (1.0 + log(self._concept_counts[concept])) for concept in candidate.all - self._covered)
        return candidate.lasting * (0.1 + new / len(candidate.all))

    def _said(self, candidate: Candidate) -> bool:
        return any(_same(candidate, each) for each in self.chosen)


def limit_similar(candidates: Iterable[Candidate]) -> Iterator[Candidate]:
    """Yield the candidates without more than a few that have the same words around other names and numbers."""
    yielded: Counter[frozenset[str]] = Counter()
    for each in candidates:
        yielded[each.claim.about.topics] += 1
        if yielded[each.claim.about.topics] <= _ALIKE:
            yield each


def rank_key(candidate: Candidate) -> tuple[float, int, tuple[str, ...]]:
    """Return the key that sorts candidates by how long they last, of equal ones the newest first."""
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
