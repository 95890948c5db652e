"""What the receiving process counts of one number of speakers is its own."""

from __future__ import annotations

import asyncio
import io
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

import pytest
import pytest_asyncio
import structlog
from structlog.processors import JSONRenderer

from benchmarks.receive.receiving_process import LoggedTrouble, ReceivingProcess
from benchmarks.receive.recogniser_work import RecogniserWork
from bot.events import QueuesMeasured, RoomOpened, UtteranceTranscribed
from voice.queue_figures import QueueFigures

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


@pytest_asyncio.fixture
async def receiving() -> AsyncIterator[ReceivingProcess]:
    """A process that has joined nothing; the test tells it what a room reports."""
    async with AsyncExitStack() as stack:
        yield ReceivingProcess(stack, LoggedTrouble())


def _queues(*, waiting: int = 0, overloaded: int = 0) -> QueuesMeasured:
    return QueuesMeasured((QueueFigures("recognise", waiting, 68, {"overloaded": overloaded}),), 0.0)


@pytest.mark.asyncio
async def test_what_was_dropped_since_the_beginning_is_counted(receiving: ReceivingProcess) -> None:
    """What the queues dropped before a number of speakers began is not counted again, and what they drop is."""
    receiving._observe(_queues(overloaded=3))
    await receiving.answer({"op": "begin"})
    receiving._observe(_queues(overloaded=10))
    assert (await receiving.answer({"op": "counters"}))["dropped"] == {"recognise: overloaded": 7}
    await receiving.answer({"op": "begin"})
    assert (await receiving.answer({"op": "counters"}))["dropped"] == {}


@pytest.mark.asyncio
async def test_after_the_warm_up_only_the_cost_counts_anew(receiving: ReceivingProcess) -> None:
    """A packet that was lost in the warm-up is lost. What the recogniser did then is not of the time measured."""

    async def no_metrics() -> str:
        return ""

    receiving._recogniser = RecogniserWork(no_metrics)
    await receiving.answer({"op": "begin"})
    receiving._observe(UtteranceTranscribed("warm-up", 1, "Hello.", 0.0, 1.0, 1.5))
    receiving._observe(_queues(overloaded=3))
    await receiving.answer({"op": "warmed_up"})
    receiving._observe(UtteranceTranscribed("measured", 1, "Hello.", 0.0, 1.0, 1.5))
    cost = await receiving.answer({"op": "end"})
    assert isinstance(cost["recogniser"], dict)
    assert cost["recogniser"]["texts"] == 1
    assert (await receiving.answer({"op": "counters"}))["dropped"] == {"recognise: overloaded": 3}


@pytest.mark.asyncio
async def test_the_next_speakers_wait_until_all_is_recognised(receiving: ReceivingProcess) -> None:
    """A room is settled with the first report in which no utterance waits for its text, counted from the question."""
    receiving._observe(_queues())
    settled = asyncio.create_task(receiving.answer({"op": "settle", "within_s": 60.0}), name="settling")
    await asyncio.sleep(0)
    receiving._observe(_queues(waiting=2))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert not settled.done()
    receiving._observe(_queues())
    assert await settled == {"settled": True}


@pytest.mark.asyncio
async def test_a_room_that_never_settles_is_told(receiving: ReceivingProcess) -> None:
    """A recogniser that is still behind when the time is over does not hold the benchmark up."""
    assert await receiving.answer({"op": "settle", "within_s": 0.0}) == {"settled": False}


@pytest.mark.asyncio
async def test_a_room_that_began_anew_and_what_was_logged_are_told() -> None:
    """Counters of another room are no measurement, and its reason is in the log. What was told is not told again."""
    trouble = LoggedTrouble()
    log = structlog.wrap_logger(structlog.PrintLogger(io.StringIO()), processors=[trouble, JSONRenderer()])
    async with AsyncExitStack() as stack:
        receiving = ReceivingProcess(stack, trouble)
        receiving._observe(RoomOpened("an-evening", 1, 2, resumed=False, at=0.0))
        await receiving.answer({"op": "begin"})
        assert (await receiving.answer({"op": "counters"}))["rooms_opened"] == 0
        receiving._observe(RoomOpened("an-evening", 1, 2, resumed=True, at=0.0))
        log.error("room_crashed", guild_id=1, error_class="StoreError")
        counted = await receiving.answer({"op": "counters"})
        assert counted["rooms_opened"] == 1
        assert counted["logged"] == {"room_crashed error_class=StoreError": 1}
        assert (await receiving.answer({"op": "counters"}))["logged"] == {}
