"""Our own memory search, as the benchmark asks it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from benchmarks.memory.roomsearch import room_search
from benchmarks.progress import Silence
from tests.benchmarks.memory.test_retrieval import LINES

if TYPE_CHECKING:
    from collections.abc import Sequence


@pytest.mark.asyncio
async def test_what_was_added_is_found_with_its_neighbours() -> None:
    """In pieces or at once, the turn comes with those beside it."""
    async with room_search() as search:
        await search.add(LINES[:2])
        await search.add([])
        await search.add(LINES[2:])
        found = await search.search("When is the raid?", limit=3)
    assert any(quote.seq == 1 and "Friday" in quote.text for quote in found)


class OneAxis:
    """An embedder to which everything is alike."""

    model = "one axis"

    async def embed(self, texts: Sequence[str], *, urgent: bool = False) -> Sequence[Sequence[float]]:
        """Return the same vector for each."""
        return [[1.0, 0.0, 0.0, 0.0] for _ in texts]


@pytest.mark.asyncio
async def test_vectors_may_be_real_or_random() -> None:
    """Each passage gets one, once, and the search goes on working."""
    async with room_search() as words:
        await words.add(LINES)
        random = words.with_embedder(OneAxis())
        await random.embed_at_random(4, Silence())
        assert await random.embed_all() == 0
        assert random.name.endswith("one axis")
        assert await random.search("salt", limit=2)
    async with room_search(OneAxis()) as search:
        await search.add(LINES)
        assert await search.embed_all() == len(LINES)
        assert await search.search("salt", limit=2)


@pytest.mark.asyncio
async def test_without_an_embedder_nothing_is_embedded() -> None:
    """Full text alone has nothing to fill."""
    async with room_search() as search:
        await search.add(LINES)
        assert await search.embed_all() == 0
        assert "full text alone" in search.name
