"""The facts of one segment, as an open session keeps them of all its segments.

A `Candidate` and a `KnownFact` take three times what a fact itself takes. They are made when a summary or a prompt may
have them; the meaning of the sentence is mostly cached then.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from typing import TYPE_CHECKING

from compaction.summary.paragraph import fact_candidate, fact_worth
from compaction.summary.port import known_fact

if TYPE_CHECKING:
    from collections.abc import Iterator

    from compaction.model import Fact, Segment
    from compaction.summary.paragraph import Candidate
    from compaction.summary.port import KnownFact


@dataclass(frozen=True, slots=True)
class SegmentFact:
    """One fact of a segment: its number there, and its worth per length (see `paragraph.Candidate`)."""

    segment: Segment
    number: int
    worth: float

    @property
    def fact(self) -> Fact:
        return self.segment.facts[self.number]

    @property
    def ref(self) -> str:
        """Return what others name it by: `segment_id#number`."""
        return f"{self.segment.id}#{self.number}"

    def known(self) -> KnownFact:
        """Return the fact as a new batch may supersede it."""
        return known_fact(self.segment, self.number)

    def candidate(self) -> Candidate:
        """Return the fact as a sentence that a summary may take."""
        return fact_candidate(self.segment.id, self.fact, ref=self.ref, worth=self.worth)


@dataclass(frozen=True, slots=True)
class SegmentFacts:
    """The facts of one segment that have a text, in order. `worths`: of all its facts, 0 for one without a text."""

    segment: Segment
    worths: array[float]

    @classmethod
    def of(cls, segment: Segment) -> SegmentFacts:
        """Read what the facts of a segment mean, which takes a moment for each."""
        return cls(segment, array("d", (fact_worth(fact) if fact.text else 0.0 for fact in segment.facts)))

    def __iter__(self) -> Iterator[SegmentFact]:
        return self.worth_at_least(0.0)

    def worth_at_least(self, least: float) -> Iterator[SegmentFact]:
        """Yield the facts that have a text and are worth so much."""
        return (
            SegmentFact(self.segment, number, worth)
            for number, worth in enumerate(self.worths)
            if worth >= least and self.segment.facts[number].text
        )
