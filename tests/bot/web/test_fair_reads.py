"""Who reads when many want to."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

import pytest

from bot.web.fair_reads import FairReads, TooManyReadsError

ADA, BEN, CHLOE = 2001, 2002, None


class Reading:
    """Reads that last until the test ends them. `begun`: the names of those that have begun, in order."""

    def __init__(self, reads: FairReads) -> None:
        self._reads = reads
        self.begun: list[str] = []
        self._ends: dict[str, asyncio.Event] = {}
        self.tasks: dict[str, asyncio.Task[None]] = {}

    async def ask(self, name: str, person: int | None) -> None:
        """Ask for a read, and let everything happen that can."""
        self._ends[name] = asyncio.Event()
        self.tasks[name] = asyncio.create_task(self._read(name, person))
        await settled()

    async def end(self, name: str) -> None:
        """Let a read be over."""
        self._ends[name].set()
        await settled()

    async def _read(self, name: str, person: int | None) -> None:
        async with self._reads.read(person):
            self.begun.append(name)
            await self._ends[name].wait()


async def settled() -> None:
    """Let all tasks run until each waits."""
    for _ in range(10):
        await asyncio.sleep(0)


@pytest.mark.asyncio
async def test_nobody_waits_for_all_that_another_has_asked_for() -> None:
    """One person's reads follow each other, so the second place is free for others, and each read that ends gives the
    next person their turn.
    """
    reading = Reading(FairReads(2, most=16))
    for number in range(5):
        await reading.ask(f"ada {number}", ADA)
    assert reading.begun == ["ada 0"]
    await reading.ask("ben", BEN)
    await reading.ask("chloe", CHLOE)
    assert reading.begun == ["ada 0", "ben"]
    await reading.end("ada 0")
    assert reading.begun == ["ada 0", "ben", "chloe"]
    await reading.end("ben")
    assert reading.begun == ["ada 0", "ben", "chloe", "ada 1"]
    for task in reading.tasks.values():
        task.cancel()
    await asyncio.gather(*reading.tasks.values(), return_exceptions=True)


@pytest.mark.asyncio
async def test_what_one_person_may_ask_for_is_bounded() -> None:
    """Beyond it a read is refused at once. One that ends, or whose browser has gone, makes room."""
    reads = FairReads(2, most=3)
    reading = Reading(reads)
    for number in range(3):
        await reading.ask(f"ada {number}", ADA)
    with pytest.raises(TooManyReadsError):
        async with reads.read(ADA):
            pass
    async with reads.read(BEN):
        reading.tasks["ada 2"].cancel()
        await settled()
        await reading.ask("ada 3", ADA)
        await reading.end("ada 0")
        await reading.end("ada 1")
        assert reading.begun == ["ada 0", "ada 1", "ada 3"]
        await reading.end("ada 3")
    await asyncio.gather(*reading.tasks.values(), return_exceptions=True)
    # Nothing is left of who reads no more.
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(reads.read(ADA))
        assert list(reads._readers) == [ADA]
    assert reads._readers == {}
