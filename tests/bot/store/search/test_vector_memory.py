"""The copy of the embeddings in memory is bounded, and loaded whoever gives up waiting for it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from bot.store.database import open_database
from bot.store.search import vector_memory
from bot.store.search.vector_memory import MemoryVectorSearch
from bot.store.search.vectors import VectorSet
from compaction.memory.passage import Scope
from tests.bot.store.search.test_search import _Room
from tests.bot.store.search.test_vector_store import like
from tests.compaction.memory.recall_index_contract import ELSEWHERE, EVENING, SAID, turn

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bot.store.search.vectors import StoredVector
    from tests.bot.conftest import Place


@pytest.mark.asyncio
async def test_memory_is_bounded_over_all_guilds(place: Place) -> None:
    """Of more than may be in memory, the newest are found, each guild's own."""
    async with open_database(place) as database:
        room = _Room(database)
        await room.tell(ELSEWHERE, *(turn(n, f"Some words about the lighthouse {n}.") for n in range(4)))
        await room.embed()
        await room.tell(EVENING, *SAID[:4])
        await room.embed()
        search = MemoryVectorSearch(database, most=5)
        assert len(await like(search, "lighthouse", Scope(guild_id=1))) == 4
        assert len(await like(search, "lighthouse", Scope(guild_id=2))) == 1
        assert len(search) == 5


@pytest.mark.asyncio
async def test_who_gives_up_waiting_leaves_what_was_loaded(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Replies wait only a moment for a search. If each began to load anew, none would ever have all of a long memory,
    neither at its first search nor when much was added.
    """
    loaded: list[int] = []
    searching: list[asyncio.Task[object]] = []
    add = VectorSet.add

    def add_and_give_up(self: VectorSet, vectors: Iterable[StoredVector]) -> None:
        page = list(vectors)
        add(self, page)
        loaded.extend(each.passage_id for each in page)
        if len(loaded) % 2 == 0:
            searching[-1].cancel()

    monkeypatch.setattr(vector_memory, "_PAGE_ROWS", 1)
    monkeypatch.setattr(VectorSet, "add", add_and_give_up)
    async with open_database(place) as database:
        room = _Room(database)
        search = MemoryVectorSearch(database, most=50)
        told = 0
        for count in (5, 8):
            await room.tell(EVENING, *(turn(n, f"Some words about the lighthouse {n}.") for n in range(told, count)))
            await room.embed()
            told = count
            for _ in range(count):
                searching.append(asyncio.create_task(like(search, "lighthouse", Scope(guild_id=1))))
                await asyncio.wait({searching[-1]})
            assert len(searching[-1].result()) == count  # type: ignore[arg-type]
            assert len(loaded) == len(set(loaded)) == len(search) == count
