"""What the searches find, over whole conversations."""

from __future__ import annotations

import pytest

from benchmarks.memory.evenings import TemplateSet, evening
from benchmarks.memory.material import Heard
from benchmarks.memory.race import turns_for
from benchmarks.memory.searching import measure_finding
from benchmarks.progress import Silence


@pytest.mark.asyncio
async def test_ours_and_the_plain_one_are_asked_the_same() -> None:
    """Each at every checkpoint, about as many facts."""
    heard = Heard(evening(2, TemplateSet.TUNING, lines=turns_for(6)), (3, 6))
    figures = await measure_finding({"tuning": [heard]}, None, Silence())
    assert set(figures) == {"plain BM25 over windows", "memory_search, full text alone"}
    asked = []
    for of_search in figures.values():
        of_set = of_search["tuning"]
        assert isinstance(of_set, dict)
        assert set(of_set) == {"3", "6"}
        asked.append([at["facts"] for at in of_set.values() if isinstance(at, dict)])
    assert asked[0] == asked[1]
