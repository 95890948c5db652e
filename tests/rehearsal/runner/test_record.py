"""The record keeps everything that was reported and wakes the tasks that wait for it."""

from __future__ import annotations

import asyncio

from rehearsal.runner.observations import LoggedProblem, ObservedUtterance
from rehearsal.runner.record import RunRecord
from tests.fakes.virtual_time import run_virtually


def heard(name: str, reason: str | None = None) -> ObservedUtterance:
    """Return an utterance."""
    return ObservedUtterance(name, 1, "hello", 1.0, 2.0, 2.5, dropped_reason=reason)


def test_waiting_ends_with_the_report_that_fulfils_it() -> None:
    """`wait_until` returns as soon as a report makes the condition true."""

    async def scene() -> tuple[bool, float]:
        record, loop = RunRecord(), asyncio.get_running_loop()
        began = loop.time()
        loop.call_later(1.0, record.observe, LoggedProblem("a", ""))
        loop.call_later(2.0, record.observe, heard("u1"))
        return await record.wait_until(lambda: bool(record.utterances), timeout_s=9.0), loop.time() - began

    assert run_virtually(scene()) == (True, 2.0)


def test_waiting_is_bounded_and_leaves_nothing_behind() -> None:
    """`wait_until` returns False at the timeout, and the same record can be waited on again."""

    async def scene() -> tuple[bool, bool]:
        record = RunRecord()
        first = await record.wait_until(lambda: bool(record.utterances), timeout_s=3.0)
        record.observe(heard("u1"))
        return first, await record.wait_until(lambda: bool(record.utterances), timeout_s=0.0)

    assert run_virtually(scene()) == (False, True)


def test_presence_is_for_the_whole_time() -> None:
    """`present` returns only people who were there for the whole time."""
    record = RunRecord()
    record.note_entered(1, 0.0)
    record.note_entered(2, 5.0)
    record.note_left(1, 8.0)
    record.note_left(3, 8.0)
    record.note_entered(1, 20.0)
    assert record.present(6.0, 7.0) == (1, 2)
    assert record.present(6.0, 9.0) == (2,)
    assert record.present(21.0, 22.0) == (1, 2)
