"""The indexer's background work: it embeds newest first and survives failures."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest_asyncio
from structlog.typing import EventDict

from bot.background_task import background_task
from bot.memory.indexer import BATCH, FIRST_RETRY_S, IDLE_S, LONGEST_RETRY_S, PAUSE_S, Indexer
from bot.store.database import open_database
from compaction.errors import EmbeddingError
from tests.bot.store.search.searched_room import SearchedRoom
from tests.compaction.memory.recall_index_contract import EVENING, LetterEmbedder, turn
from tests.fakes.clock import FakeClock
from tests.patience import patiently


class Moody(LetterEmbedder):
    """Raises each of the given errors once, and works after that."""

    def __init__(self, *troubles: Exception) -> None:
        self.troubles = list(troubles)
        self.embedded: list[str] = []

    async def embed(self, texts: Sequence[str], *, urgent: bool = False) -> Sequence[Sequence[float]]:
        """Return the vectors, or raise the next error."""
        assert not urgent
        assert len(texts) <= BATCH
        if self.troubles:
            raise self.troubles.pop(0)
        self.embedded += texts
        return await super().embed(texts)


@pytest_asyncio.fixture
async def room(file: Path) -> AsyncIterator[SearchedRoom]:
    """A database with twenty turns that are not embedded."""
    async with open_database(file, synchronous="normal") as database:
        room = SearchedRoom(database)
        await room.add(EVENING, *(turn(seq, f"We talk about thing number {seq}.") for seq in range(20)))
        yield room


async def stored(room: SearchedRoom) -> int:
    """Return the number of stored embeddings."""
    return int((await room.database.rows("SELECT count(*) FROM passage_vectors"))[0][0])


async def test_the_task_works_rests_and_ends(room: SearchedRoom) -> None:
    """The task embeds the waiting turns in steps, later also new turns, and ends with its context."""
    clock, embedder = FakeClock(), Moody()
    async with background_task(Indexer(room.vectors, embedder, clock).run(), name="indexer"):
        await _until_asleep(clock)
        assert await stored(room) == BATCH
        await _steps(clock, 3)
        assert await stored(room) == 20
        await room.add(EVENING, turn(20, "We talk about yet another thing."))
        clock.advance(IDLE_S)
        await _until_asleep(clock)
        assert await stored(room) == 21
    assert [task.get_name() for task in asyncio.all_tasks() if task.get_name() == "recall-indexer"] == []


async def test_a_trouble_is_told_once_and_tried_again(room: SearchedRoom, logs: list[EventDict]) -> None:
    """A failure is logged once and retried at growing intervals until everything is embedded."""
    clock = FakeClock()
    embedder = Moody(EmbeddingError("Busy.", retryable=True), TimeoutError())
    async with background_task(Indexer(room.vectors, embedder, clock).run(), name="indexer"):
        await _until_asleep(clock)
        assert await stored(room) == 0
        clock.advance(FIRST_RETRY_S)
        await _until_asleep(clock)
        assert await stored(room) == 0
        clock.advance(2 * FIRST_RETRY_S)
        await _until_asleep(clock)
        await _steps(clock, 3)
        assert await stored(room) == 20
    assert [(each["event"], str(each["problem"])) for each in logs if each["log_level"] == "warning"] == [
        ("recall_indexing_failed", "Busy.")
    ]


async def test_a_wrong_key_is_not_tried_every_second(room: SearchedRoom) -> None:
    """A failure that is not retryable is tried again only after the longest interval."""
    clock = FakeClock()
    embedder = Moody(EmbeddingError("The key is wrong.", retryable=False))
    async with background_task(Indexer(room.vectors, embedder, clock).run(), name="indexer"):
        await _until_asleep(clock)
        clock.advance(LONGEST_RETRY_S - 1)
        assert clock.sleeping == 1
        assert await stored(room) == 0
        clock.advance(1)
        await _until_asleep(clock)
        assert await stored(room) == BATCH


async def _steps(clock: FakeClock, count: int) -> None:
    """Let the task do this many further steps."""
    for _ in range(count):
        clock.advance(PAUSE_S)
        await _until_asleep(clock)


async def _until_asleep(clock: FakeClock) -> None:
    """Wait until the task sleeps. Its database work runs in other threads, so this takes real time."""
    await patiently(clock.until_somebody_sleeps())
