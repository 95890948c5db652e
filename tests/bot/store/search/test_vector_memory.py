"""The copy of the embeddings in memory is bounded."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bot.store.database import open_database
from bot.store.search.vector_memory import MemoryVectorSearch
from compaction.memory.passage import Scope
from tests.bot.store.search.test_search import _Room
from tests.bot.store.search.test_vector_store import like
from tests.compaction.memory.recall_index_contract import ELSEWHERE, EVENING, SAID, turn

if TYPE_CHECKING:
    from tests.bot.conftest import Place


@pytest.mark.asyncio
async def test_memory_is_bounded_over_all_guilds(place: Place) -> None:
    """If memory is full, the guild that was searched longest ago is dropped, and it is loaded again at its
    next search.
    """
    async with open_database(place) as database:
        room = _Room(database)
        await room.tell(EVENING, *SAID[:4])
        await room.tell(ELSEWHERE, *(turn(n, f"Some words about the lighthouse {n}.") for n in range(4)))
        await room.embed()
        search = MemoryVectorSearch(database, most=5)
        for _ in range(2):
            assert len(await like(search, "lighthouse", Scope(guild_id=1))) == 4
            assert len(await like(search, "lighthouse", Scope(guild_id=2))) == 4
            assert len(search) <= 5
