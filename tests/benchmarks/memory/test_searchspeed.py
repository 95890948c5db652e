"""How long a search takes, in a small store."""

from __future__ import annotations

import pytest

from benchmarks.memory.retrieval import plain_windows
from benchmarks.memory.roomsearch import room_search
from benchmarks.memory.searchspeed import fill, measure_search
from benchmarks.progress import Silence


@pytest.mark.asyncio
async def test_both_searches_can_be_measured() -> None:
    """The plain one and ours, through the same port."""
    async with room_search() as ours, plain_windows() as plain:
        for retriever in (ours, plain):
            told = await measure_search(retriever, await fill(retriever, 150, Silence()), Silence())
            assert told["turns"] == 150
            assert told["retriever"] == retriever.name
            assert isinstance(told["p95_ms"], float)
