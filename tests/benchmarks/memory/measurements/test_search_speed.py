"""How long a search takes, in a small store."""

from __future__ import annotations

import pytest

from benchmarks.memory.measurements.search_speed import fill_index, measure_search_speed
from benchmarks.memory.search.roomtone_search import open_roomtone_search
from benchmarks.progress import NoProgress


@pytest.mark.asyncio
async def test_the_search_can_be_measured() -> None:
    """The report has the number of turns and the time of a search."""
    async with open_roomtone_search() as ours:
        told = await measure_search_speed(ours, await fill_index(ours, 150, NoProgress()), NoProgress())
        assert told["turns"] == 150
        assert told["retriever"] == ours.name
        assert isinstance(told["p95_ms"], float)
