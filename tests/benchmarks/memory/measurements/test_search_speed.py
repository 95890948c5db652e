"""How long a search takes, in a small store."""

from __future__ import annotations

import pytest

from benchmarks.memory.measurements.search_speed import fill_index, measure_search_speed
from benchmarks.memory.search.retrieval import plain_windows
from benchmarks.memory.search.roomtone_search import open_roomtone_search
from benchmarks.progress import NoProgress


@pytest.mark.asyncio
async def test_both_searches_can_be_measured() -> None:
    """The baseline and our search can both be measured through the same interface."""
    async with open_roomtone_search() as ours, plain_windows() as plain:
        for retriever in (ours, plain):
            told = await measure_search_speed(retriever, await fill_index(retriever, 150, NoProgress()), NoProgress())
            assert told["turns"] == 150
            assert told["retriever"] == retriever.name
            assert isinstance(told["p95_ms"], float)
