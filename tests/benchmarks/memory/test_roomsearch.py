"""Our own memory search, as the benchmark asks it."""

from __future__ import annotations

import pytest

from benchmarks.memory.roomsearch import room_search
from tests.benchmarks.memory.test_retrieval import LINES


@pytest.mark.asyncio
async def test_what_was_added_is_found_with_its_neighbours() -> None:
    """In pieces or at once, the turn comes with those beside it."""
    async with room_search() as search:
        await search.add(LINES[:2])
        await search.add([])
        await search.add(LINES[2:])
        found = await search.search("When is the raid?", limit=3)
    assert any(quote.seq == 1 and "Friday" in quote.text for quote in found)


@pytest.mark.asyncio
async def test_without_an_embedder_nothing_is_embedded() -> None:
    """Full text alone has nothing to fill."""
    async with room_search() as search:
        await search.add(LINES)
        assert await search.embed_all() == 0
        assert "full text alone" in search.name
