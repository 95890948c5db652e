"""Our own memory search, through the benchmark's interface."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from benchmarks.memory.conversations.conversation import ConversationLine
from benchmarks.memory.conversations.synthetic_evenings import TemplateSet, generate_evening
from benchmarks.memory.search.roomtone_search import SESSION, RoomtoneSearch, open_roomtone_search
from bot.clock import SystemClock
from bot.store.database import open_database
from bot.store.tables import passages
from bot.store.turns import SqlTurnStore
from compaction.model import Seq, Turn, TurnKind, TurnPart

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from bot.store.database import Database

LINES = [
    ConversationLine("Ada", "Nice weather.", 0.0),
    ConversationLine("Bob", "Is the raid still on Thursday?", 1.0),
    ConversationLine("Ada", "No, it is Friday now.", 2.0),
    ConversationLine("Bob", "Pass the salt.", 3.0),
]


@pytest.mark.asyncio
async def test_what_was_added_is_found_with_its_neighbours() -> None:
    """A turn is found with the turns beside it, whether the turns were added in pieces or at once."""
    async with open_roomtone_search() as search:
        await search.add(LINES[:2])
        await search.add([])
        await search.add(LINES[2:])
        found = await search.search("When is the raid?", limit=3)
    assert any(quote.seq == 2 and "Friday" in quote.text for quote in found)
    assert any("raid" in quote.text.lower() and quote.seq in {1, 2} for quote in found)


class OneAxis:
    """An embedder that gives every text the same vector."""

    model = "one axis"

    async def embed(self, texts: Sequence[str], *, urgent: bool = False) -> Sequence[Sequence[float]]:
        """Return the same vector for each text."""
        return [[1.0, 0.0, 0.0, 0.0] for _ in texts]


@pytest.mark.asyncio
async def test_each_passage_gets_one_vector() -> None:
    """Each passage gets one vector, only once, and the search works afterwards."""
    async with open_roomtone_search(OneAxis()) as search:
        await search.add(LINES)
        assert await search.embed_all() == len(LINES)
        assert await search.embed_all() == 0
        assert await search.search("salt", limit=2)


@pytest.mark.asyncio
async def test_without_an_embedder_nothing_is_embedded() -> None:
    """Without an embedder nothing is embedded, and only full-text search is used."""
    async with open_roomtone_search() as search:
        await search.add(LINES)
        assert await search.embed_all() == 0
        assert "full text alone" in search.name


@pytest.mark.asyncio
async def test_rows_are_those_of_the_store_itself(tmp_path: Path) -> None:
    """Turns that are added in any pieces give the same passages as storing them one by one."""
    lines = generate_evening(4, TemplateSet.TUNING, lines=60).lines
    made: list[list[tuple[object, ...]]] = []
    async with open_database(tmp_path / "one.db", synchronous="normal") as database:
        store = SqlTurnStore(database, SystemClock())
        for seq, line in enumerate(lines):
            kind = TurnKind.ASSISTANT if line.by_bot else TurnKind.SPEECH
            part = TurnPart(line.speaker.casefold(), line.speaker, line.text)
            await store.append_turn(SESSION, Turn(Seq(seq), kind, line.at, line.at, (part,)))
        made.append(await rows_of(database))
    for pieces in ((1, 1, 58), (60,), (7, 1, 30, 22)):
        async with open_database(tmp_path / f"{len(made)}.db", synchronous="normal") as database:
            search, done = RoomtoneSearch(database), 0
            for piece in pieces:
                await search.add(lines[done : done + piece])
                done += piece
            made.append(await rows_of(database))
    assert len(made[0]) == 60
    assert made[1:] == made[:1] * 3


async def rows_of(database: Database) -> list[tuple[object, ...]]:
    """Return all passages, in order of their turns."""
    async with database.reading() as connection:
        found = (await connection.execute(passages.select().order_by(passages.c.start_seq))).all()
    return [tuple(row) for row in found]
