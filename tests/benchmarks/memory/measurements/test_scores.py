"""Adding up the figures of all conversations."""

from __future__ import annotations

from benchmarks.memory.judges.fact_judge import FactTally
from benchmarks.memory.measurements.evaluation import Checkpoint, EvaluationRun
from benchmarks.memory.measurements.scores import found_scores, scores
from benchmarks.memory.search.fact_retrieval import FoundFacts
from benchmarks.memory.systems.memory_system import FoldCost


def course(kept_facts: int, *, names: frozenset[str] = frozenset()) -> EvaluationRun:
    """Return an evaluation run with one checkpoint."""
    tally = FactTally(10, kept_facts, 4, 1, kept_facts, 0)
    checkpoint = Checkpoint(20, 20, 200, tally, tally, 5, 20, 1_000, "Told.")
    return EvaluationRun([checkpoint], summaries=20, invented_names=set(names), cost=FoldCost(fold_s=[1.0, 3.0]))


def test_shares_are_over_facts_not_over_conversations() -> None:
    """Shares are taken over all facts: ten of twenty facts, whatever conversation they are from."""
    figures = scores([course(8, names=frozenset({"Max"})), course(2)])
    assert figures["invented_names"] == ["Max"]
    assert figures["summaries"] == 40
    after = figures["after_folds"]
    assert isinstance(after, dict)
    assert list(after) == ["20"]
    at = after["20"]
    assert isinstance(at, dict)
    assert at["kept"] == 0.5
    assert (at["stale"], at["speaker_right"], at["entities"], at["in_segments"]) == (0.25, 1.0, 0.25, 0.5)


def test_brought_conversations_are_not_quoted() -> None:
    """The report has a summary as an example, but not of conversations that the user brought."""
    assert scores([course(8)])["example"] == "Told."
    assert "example" not in scores([course(8)], quotes=False)


def test_found_facts_are_summed() -> None:
    """Found facts are added up, and the share of old values counts only corrected facts."""
    told = found_scores([FoundFacts(10, 9, 4, 1, 10), FoundFacts(10, 10, 0, 0, 10)])
    assert told == {"facts": 20, "found": 0.95, "told_or_found": 1.0, "corrected": 4, "old_value_first": 0.25}
