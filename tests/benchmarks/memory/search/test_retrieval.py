"""The baseline search that our search is compared with."""

from __future__ import annotations

import pytest

from benchmarks.memory.conversations.conversation import ConversationLine
from benchmarks.memory.search.retrieval import plain_windows

LINES = [
    ConversationLine("Ada", "Nice weather.", 0.0),
    ConversationLine("Bob", "Is the raid still on Thursday?", 1.0),
    ConversationLine("Ada", "No, it is Friday now.", 2.0),
    ConversationLine("Bob", "Pass the salt.", 3.0),
]


@pytest.mark.asyncio
async def test_turn_is_found_with_its_neighbours() -> None:
    """A turn is found with its neighbours, so the answer beside a question is found too."""
    async with plain_windows() as search:
        await search.add(LINES)
        found = await search.search("When is the raid?", limit=3)
        assert any("raid" in quote.text and "Friday" in quote.text for quote in found)


@pytest.mark.asyncio
async def test_turns_may_come_in_pieces() -> None:
    """Turns that are added one by one are found like turns that are added together."""
    async with plain_windows() as search:
        for line in LINES:
            await search.add([line])
            await search.search("salt", limit=1)
        assert [quote.seq for quote in await search.search("salt", limit=5)] == [3, 2]


@pytest.mark.asyncio
async def test_question_without_a_word_finds_nothing() -> None:
    """A question finds nothing if it has only words that every turn has."""
    async with plain_windows() as search:
        await search.add(LINES)
        assert await search.search("When is the", limit=5) == []
