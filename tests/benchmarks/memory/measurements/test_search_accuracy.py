"""The accuracy of the searches over whole conversations."""

from __future__ import annotations

import pytest

from benchmarks.memory.conversations.folds import turns_needed
from benchmarks.memory.conversations.synthetic_evenings import TemplateSet, generate_evening
from benchmarks.memory.measurements.conversation_sets import PlannedConversation
from benchmarks.memory.measurements.search_accuracy import measure_search_accuracy
from benchmarks.progress import NoProgress


@pytest.mark.slow
@pytest.mark.asyncio
async def test_ours_and_the_plain_one_are_asked_the_same() -> None:
    """Our search and the baseline are asked for equally many facts at each checkpoint."""
    heard = PlannedConversation(generate_evening(2, TemplateSet.TUNING, lines=turns_needed(6)), (3, 6))
    figures = await measure_search_accuracy({"tuning": [heard]}, None, NoProgress())
    assert set(figures) == {"plain BM25 over windows", "memory_search, full text alone"}
    asked = []
    for of_search in figures.values():
        of_set = of_search["tuning"]
        assert isinstance(of_set, dict)
        assert set(of_set) == {"3", "6"}
        asked.append([at["facts"] for at in of_set.values() if isinstance(at, dict)])
    assert asked[0] == asked[1]
