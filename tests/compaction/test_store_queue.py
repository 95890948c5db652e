"""Pending writes keep their order and are stored once, however the store fails."""

from __future__ import annotations

import asyncio

import pytest

from compaction.errors import StoreError
from compaction.model import NoteId, Seq
from compaction.store_queue import LEFT_ALONE_S, StoreQueue
from tests.compaction.turn_store_contract import EVENING, landing, note, turn
from tests.fakes.turn_store import InMemoryTurnStore, StoreFault
from tests.fakes.virtual_time import virtually


def store_queue(store: InMemoryTurnStore) -> StoreQueue:
    return StoreQueue(store, EVENING)


@pytest.mark.parametrize("fault", list(StoreFault))
@virtually
async def test_failed_write_is_repeated_before_the_next(fault: StoreFault) -> None:
    """If the write of a turn fails, the next write stores both turns, in order and once."""
    faults: list[StoreFault] = []
    store = InMemoryTurnStore(fault=lambda _: faults.pop() if faults else None)
    box = store_queue(store)
    box.put(turn(0))
    await box.flush()
    faults.append(fault)
    box.put(turn(1))
    with pytest.raises(StoreError):
        await box.flush()
    assert box.stored_turns == 1
    box.put(turn(2))
    await box.flush()
    assert box.stored_turns == 3
    assert tuple(await store.turns(EVENING, Seq(0), Seq(9))) == (turn(0), turn(1), turn(2))


@virtually
async def test_landing_never_overtakes_its_notes() -> None:
    """A note whose write failed is stored before the landing that folds it, so the note does not stay
    pending for ever.
    """
    faults = [StoreFault.REFUSED]
    store = InMemoryTurnStore(fault=lambda _: faults.pop() if faults else None)
    box = store_queue(store)
    box.put(note("a"))
    box.put((NoteId("a"),))
    with pytest.raises(StoreError):
        await box.flush()
    for seq in range(61):
        box.put(turn(seq))
    assert await box.land(landing(0, 10, revision=0, note_ids=["a"]))
    memory = await box.load()
    assert (memory.live_notes, memory.state.pending_notes, memory.total_turns) == ((), (), 61)


@virtually
async def test_cancelled_writer_loses_nothing() -> None:
    """If a writing task is cancelled, the next write stores what that task had queued."""
    faults = [StoreFault.HANGS]
    store = InMemoryTurnStore(fault=lambda _: faults.pop() if faults else None)
    box = store_queue(store)
    box.put(turn(0))
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(1.0):
            await box.flush()
    box.put(turn(1))
    await box.flush()
    assert (await box.load()).window == (turn(0), turn(1))


@virtually
async def test_a_store_that_gives_no_answer_keeps_a_conversation_waiting_once() -> None:
    """Who waits for each turn waits for such a store once, also if two did at the same time. Meanwhile what waits is
    still written for whoever asks for that, and when the store answers again, everything is as before.
    """
    loop = asyncio.get_running_loop()
    store = InMemoryTurnStore(fault=lambda _: StoreFault.HANGS)
    box = store_queue(store)

    async def say(seq: int) -> float:
        begun = loop.time()
        box.put(turn(seq))
        with pytest.raises(StoreError, match="10 seconds"):
            await box.flush_promptly()
        return loop.time() - begun

    assert await asyncio.gather(say(0), say(1)) == pytest.approx([10.0, 10.0])
    assert await say(2) == 0.0
    retry = asyncio.create_task(box.flush(), name="retry")
    await asyncio.sleep(5.0)
    assert await say(3) == 0.0
    store.fault = None
    with pytest.raises(StoreError):
        await retry
    await box.flush()
    box.put(turn(4))
    await box.flush_promptly()
    assert tuple(await store.turns(EVENING, Seq(0), Seq(9))) == tuple(turn(seq) for seq in range(5))


@virtually
async def test_a_store_that_is_left_alone_is_tried_again() -> None:
    """Also if nobody asks for what waits to be written."""
    store = InMemoryTurnStore(fault=lambda _: StoreFault.HANGS)
    box = store_queue(store)
    box.put(turn(0))
    with pytest.raises(StoreError):
        await box.flush_promptly()
    store.fault = None
    with pytest.raises(StoreError):
        await box.flush_promptly()
    await asyncio.sleep(LEFT_ALONE_S)
    await box.flush_promptly()
    assert box.stored_turns == 1


@virtually
async def test_a_store_that_refuses_at_once_is_tried_with_each_turn() -> None:
    """A full disk keeps nobody waiting, and may have room again with the next turn."""
    faults = [StoreFault.REFUSED]
    store = InMemoryTurnStore(fault=lambda _: faults.pop() if faults else None)
    box = store_queue(store)
    box.put(turn(0))
    with pytest.raises(StoreError):
        await box.flush_promptly()
    await box.flush_promptly()
    assert box.stored_turns == 1
