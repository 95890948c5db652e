"""Judge which planted facts a text still states: the current value, an old one, and who said it.

A fact is stated if a sentence names its key and its value, or if the sentence after the key's has the value and no
other key ('So the raid is still on Thursday? No, it is Friday now.').
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from benchmarks.memory.judges.text_matching import mentions, mentions_any, read_sentences

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from benchmarks.memory.conversations.conversation import FactStatement, PlantedFact

_PRONOUN = re.compile(r"^(?:[-*•]\s*)?(?:she|he|they|her|his|their)\b", re.IGNORECASE)


class Attribution(StrEnum):
    """Whether a text attributes a fact to the right person, to a wrong person, or to nobody."""

    RIGHT = "right"
    WRONG = "wrong"
    UNSAID = "unsaid"


@dataclass(frozen=True, slots=True)
class FactVerdict:
    """What one text states of one fact. `stale`: an old value without the current one."""

    kept: bool
    stale: bool
    attribution: Attribution | None


@dataclass(frozen=True, slots=True)
class FactTally:
    """What one text states of all facts planted before a given turn. `corrected`: how many facts had an old value."""

    facts: int
    kept: int
    corrected: int
    stale: int
    attributed_right: int
    attributed_wrong: int

    def __add__(self, other: FactTally) -> FactTally:
        return FactTally(
            self.facts + other.facts,
            self.kept + other.kept,
            self.corrected + other.corrected,
            self.stale + other.stale,
            self.attributed_right + other.attributed_right,
            self.attributed_wrong + other.attributed_wrong,
        )


EMPTY_TALLY = FactTally(0, 0, 0, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class _Zone:
    """The text about a key: its sentence, and the next sentence if it continues the subject. `lead`: the text before
    it.
    """

    text: str
    lead: str


class FactJudge:
    """Judges texts about one conversation's facts."""

    def __init__(self, facts: Sequence[PlantedFact], speakers: Collection[str]) -> None:
        self._facts = tuple(facts)
        self._keys = tuple({fact.key for fact in facts})
        self._speakers = tuple(speakers)

    def due(self, cursor: int, total: int) -> tuple[PlantedFact, ...]:
        """Return the facts stated before `cursor` and not corrected between `cursor` and `total`."""
        return tuple(
            fact for fact in self._facts if fact.known_at(cursor) is not None and not fact.in_flux(cursor, total)
        )

    def judged(self, text: str, cursor: int, total: int) -> FactTally:
        """Return how `text` states the facts due."""
        return self.tally(text, self.due(cursor, total), cursor)

    def entities_due(self, cursor: int, total: int) -> list[tuple[str, ...]]:
        """Return the keys and current values of the facts due, each in every accepted spelling."""
        stated = [(fact, fact.known_at(cursor)) for fact in self.due(cursor, total)]
        return [each for fact, holds in stated if holds is not None for each in ((fact.key,), holds.value)]

    def tally(self, text: str, facts: Iterable[PlantedFact], cursor: int) -> FactTally:
        """Return how `text` states these facts, as they were at `cursor`."""
        read = read_sentences(text)
        total = EMPTY_TALLY
        for fact in facts:
            verdict = self._verdict(read, fact, cursor)
            corrected = sum(each.seq < cursor for each in fact.statements) > 1
            total += FactTally(
                facts=1,
                kept=verdict.kept,
                corrected=corrected,
                stale=verdict.stale,
                attributed_right=verdict.attribution is Attribution.RIGHT,
                attributed_wrong=verdict.attribution is Attribution.WRONG,
            )
        return total

    def verdict(self, text: str, fact: PlantedFact, cursor: int) -> FactVerdict:
        """Return how `text` states one fact, as it was at `cursor`."""
        return self._verdict(read_sentences(text), fact, cursor)

    def _verdict(self, read: Sequence[str], fact: PlantedFact, cursor: int) -> FactVerdict:
        holds = fact.known_at(cursor)
        if holds is None:
            return FactVerdict(kept=False, stale=False, attribution=None)
        old = [each for each in fact.statements if each.seq < holds.seq and each.value != holds.value]
        zones = list(self._zones(read, fact.key))
        telling = [zone for zone in zones if mentions_any(zone.text, holds.value)]
        stale = any(mentions_any(zone.text, each.value) for zone in zones if zone not in telling for each in old)
        if not telling:
            return FactVerdict(kept=False, stale=stale, attribution=None)
        return FactVerdict(kept=True, stale=stale, attribution=self._attribution(telling[0], holds))

    def _zones(self, read: Sequence[str], key: str) -> Iterable[_Zone]:
        for index, sentence in enumerate(read):
            if not mentions(sentence, key):
                continue
            lead = read[index - 1] if index else ""
            following = read[index + 1] if index + 1 < len(read) else ""
            if following and not any(mentions(following, each) for each in self._keys):
                yield _Zone(f"{sentence} {following}", lead)
            else:
                yield _Zone(sentence, lead)

    def _attribution(self, zone: _Zone, holds: FactStatement) -> Attribution:
        for text in (zone.text, zone.lead if _PRONOUN.match(zone.text) else ""):
            if mentions(text, holds.speaker):
                return Attribution.RIGHT
            if any(mentions(text, name) for name in self._speakers):
                return Attribution.WRONG
        return Attribution.UNSAID
