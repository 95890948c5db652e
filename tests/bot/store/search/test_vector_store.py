"""Embeddings are stored, found and deleted, whichever process writes them and whoever searches them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any

import pytest

from bot.store.database import Database, open_database
from bot.store.search import vector_store
from bot.store.search.vector_store import VectorSet, VectorStore
from bot.store.servers import OptOutStore
from compaction.memory.passage import Scope
from compaction.model import Seq
from tests.bot.conftest import Place
from tests.bot.store.search.searched_room import SearchedRoom
from tests.compaction.memory.recall_index_contract import (
    ELSEWHERE,
    EVENING,
    MORNING,
    SAID,
    LetterEmbedder,
    note,
    turn,
)
from tests.fakes.clock import FakeClock


async def like(
    search: VectorStore,
    text: str,
    scope: Scope = Scope(),  # noqa: B008 - a value
    *,
    model: str = "letters",
) -> Sequence[int]:
    """Return the passages most similar to a text, best first."""
    (vector,) = await LetterEmbedder().embed([text])
    return [each for each, _ in await search.nearest(vector, scope, model=model, limit=9)]


async def count(database: Database) -> int:
    """Return how many embeddings are stored."""
    return int((await database.rows("SELECT count(*) FROM passage_vectors"))[0][0])


async def test_what_another_process_stores_is_found(place: Place) -> None:
    """Embeddings that another process stores are loaded before the next search, and deleted ones are removed from
    memory.
    """
    async with open_database(place) as mine, open_database(place) as theirs:
        room, other = SearchedRoom(mine), SearchedRoom(theirs)
        await room.add(EVENING, *SAID[:3])
        await room.embed()
        assert len(await like(room.vectors, "lighthouse", Scope(guild_id=1))) == 3
        await other.store.append_turn(EVENING, SAID[3])
        await other.embed()
        assert len(await like(room.vectors, "lighthouse", Scope(guild_id=1))) == 4
        await other.forget(EVENING, 2)
        assert len(await like(room.vectors, "lighthouse", Scope(guild_id=1))) == 3


async def test_another_model_starts_anew(database: Database) -> None:
    """Changing the model deletes the vectors of other models and queues their passages again."""
    room = SearchedRoom(database)
    await room.add(EVENING, *SAID[:3])
    await room.embed()
    await room.vectors.discard_other_models("letters")
    assert await count(database) == 3
    assert await room.vectors.unembedded(limit=9) == []
    await room.vectors.discard_other_models("numbers")
    assert await count(database) == 0
    assert len(await room.vectors.unembedded(limit=9)) == 3
    assert await like(room.vectors, "lighthouse", model="numbers") == []


async def test_newest_wait_first_and_small_talk_needs_none(database: Database) -> None:
    """Newer turns are embedded before older ones, and small talk such as 'yeah' is not embedded."""
    room = SearchedRoom(database)
    await room.add(EVENING, SAID[0], turn(1, "Yeah, exactly."), SAID[2])
    waiting = await room.vectors.unembedded(limit=9)
    assert [text for _, text in waiting] == [
        "Ada Lovelace: The lighthouse is closed until May.",
        None,
        "Ada Lovelace: Shall we visit Lisbon in the spring?",
    ]
    await room.embed()
    assert await count(database) == 2


async def test_sessions_of_who_opted_out_are_not_embedded(database: Database) -> None:
    """What a person said in a guild in which they opted out waits until they opt in again."""
    room, opt_outs = SearchedRoom(database), OptOutStore(database, FakeClock())
    await room.add(EVENING, SAID[0])
    await room.add(MORNING, turn(0, "I would rather see the lighthouse.", "Bob"))
    await room.add(ELSEWHERE, turn(0, "Shall we visit Lisbon in the spring?"))
    await opt_outs.put(1, 11, out=True)
    waiting = [text for _, text in await room.vectors.unembedded(limit=9)]
    assert waiting == [
        "Ada Lovelace: Shall we visit Lisbon in the spring?",
        "Bob: I would rather see the lighthouse.",
    ]
    assert len(await room.vectors.unembedded(limit=9)) == 2
    await room.add(EVENING, turn(1, "We saw the lighthouse from the ferry.", "Bob"), note("n1", "A map of Lisbon"))
    waiting = [text for _, text in await room.vectors.unembedded(limit=9)]
    assert waiting[0] == "Bob: We saw the lighthouse from the ferry."
    assert len(waiting) == 3
    await opt_outs.put(1, 11, out=False)
    assert len(await room.vectors.unembedded(limit=9)) == 5


async def test_what_went_while_it_was_embedded_is_left_out(database: Database) -> None:
    """An embedding that arrives after its turn was forgotten is not stored."""
    room = SearchedRoom(database)
    await room.add(EVENING, *SAID[:3])
    waiting = await room.vectors.unembedded(limit=9)
    await room.forget(EVENING, 1)
    await room.vectors.store("letters", {each: [1.0, 0.0] for each, _ in waiting})
    assert await count(database) == 2
    assert await room.index.find_turns(EVENING, [Seq(1)]) == ()


async def test_memory_is_bounded_over_all_guilds(database: Database) -> None:
    """Of more than may be in memory, the newest are found, each guild's own."""
    room = SearchedRoom(database)
    await room.add(ELSEWHERE, *(turn(n, f"Some words about the lighthouse {n}.") for n in range(4)))
    await room.embed()
    await room.add(EVENING, *SAID[:4])
    await room.embed()
    search = VectorStore(database, most=5)
    assert len(await like(search, "lighthouse", Scope(guild_id=1))) == 4
    assert len(await like(search, "lighthouse", Scope(guild_id=2))) == 1


async def test_who_gives_up_waiting_leaves_what_was_loaded(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Replies wait only a moment for a search. If each began to load anew, none would ever have all of a long memory,
    neither at its first search nor when much was added.
    """
    loaded: list[int] = []
    searching: list[asyncio.Task[object]] = []
    add = VectorSet.add

    def add_and_give_up(self: VectorSet, vectors: Iterable[Any]) -> None:
        page = list(vectors)
        add(self, page)
        loaded.extend(each.passage_id for each in page)
        if len(loaded) % 2 == 0:
            searching[-1].cancel()

    monkeypatch.setattr(vector_store, "PAGE_ROWS", 1)
    monkeypatch.setattr(VectorSet, "add", add_and_give_up)
    room = SearchedRoom(database)
    search = VectorStore(database, most=50)
    told = 0
    for count in (5, 8):
        await room.add(EVENING, *(turn(n, f"Some words about the lighthouse {n}.") for n in range(told, count)))
        await room.embed()
        told = count
        for _ in range(count):
            searching.append(asyncio.create_task(like(search, "lighthouse", Scope(guild_id=1))))
            await asyncio.wait({searching[-1]})
        assert len(searching[-1].result()) == count  # type: ignore[arg-type]
        assert len(loaded) == len(set(loaded)) == count
