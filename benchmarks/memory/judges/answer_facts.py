"""Compares the facts of recorded answers with those that landed: kept, altered, replaced by a quote, or refused."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from benchmarks.memory.judges.statement_judge import StatementJudge
from benchmarks.memory.judges.text_matching import letters

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from benchmarks.report import Json
    from compaction.model import Fact, Segment

# Another text with this share of the fact's words is the fact, altered.
_SAME_FACT = 0.7
_EXAMPLES = 20


@dataclass(frozen=True, slots=True)
class AnsweredFact:
    """One fact of an answer: its text, its turns, and how many known facts it supersedes."""

    text: str
    turns: frozenset[int]
    supersedes: int


@dataclass(slots=True)
class AnswerFacts:
    """What became of the facts of one or more answers, and examples of those that were not kept.

    `superseded_by_code`: facts that were replaced though no answer said so.
    """

    fates: Counter[str] = field(default_factory=Counter)
    superseded_by_code: int = 0
    examples: list[str] = field(default_factory=list)

    def add(self, other: AnswerFacts) -> None:
        """Add the counts of another conversation."""
        self.fates += other.fates
        self.superseded_by_code += other.superseded_by_code
        self.examples += other.examples

    def figures(self) -> dict[str, Json]:
        """Return the counts for the report."""
        return {
            "facts": self.fates.total(),
            **{fate: self.fates[fate] for fate in ("kept", "quoted", "altered", "refused")},
            "superseded_by_code": self.superseded_by_code,
            "examples": list(self.examples[:_EXAMPLES]),
        }


def compare_facts(
    given: Iterable[tuple[str, str]], segments: Sequence[Segment], people: Collection[str]
) -> AnswerFacts:
    """Compare the answers `given`, each with the turns that its request showed, with the segments they became."""
    judge = StatementJudge(people)
    answered: dict[int, list[AnsweredFact]] = {}
    for span, text in given:
        facts = read_facts(text)
        if span and facts:
            # The last answer about a batch is the one that was used.
            answered[int(span.rpartition("-")[2])] = facts
    result = AnswerFacts()
    for last, facts in answered.items():
        segment = next((each for each in segments if each.start <= last < each.end), None)
        landed = () if segment is None else segment.facts
        for fact in facts:
            fate = _fate(fact, landed, judge)
            result.fates[fate] += 1
            if fate != "kept":
                result.examples.append(f"{fate}: {fact.text}")
        by_answer = sum(fact.supersedes for fact in facts)
        result.superseded_by_code += max(0, sum(len(fact.supersedes) for fact in landed) - by_answer)
    return result


def read_facts(answer: str) -> list[AnsweredFact]:
    """Return the facts of an answer in JSON; none if it has no such part."""
    try:
        whole = json.loads(answer[answer.index("{") : answer.rindex("}") + 1])
    except ValueError:
        return []
    listed = whole.get("facts") if isinstance(whole, dict) else None
    return [
        AnsweredFact(str(each["text"]), frozenset(_turns(each)), len(each.get("supersedes") or ()))
        for each in (listed if isinstance(listed, list) else ())
        if isinstance(each, dict) and each.get("text")
    ]


def _turns(fact: dict[str, Json]) -> Iterable[int]:
    for name, value in fact.items():
        if name.startswith("turn"):
            yield from (each for each in (value if isinstance(value, list) else [value]) if isinstance(each, int))


def _fate(fact: AnsweredFact, landed: Sequence[Fact], judge: StatementJudge) -> str:
    if any(letters(each.text) == letters(fact.text) for each in landed):
        return "kept"
    if any(not each.quoted and judge.share(fact.text, each.text) >= _SAME_FACT for each in landed):
        return "altered"
    if any(each.quoted and fact.turns & set(each.turns) for each in landed):
        return "quoted"
    return "refused"
