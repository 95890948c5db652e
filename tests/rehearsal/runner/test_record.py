"""The record keeps everything that was reported and wakes the tasks that wait for it."""

from __future__ import annotations

import asyncio

from rehearsal.runner.observations import BotCrashed, LoggedProblem, ObservedPacketCounters, ObservedUtterance
from rehearsal.runner.record import RunRecord, SpokenLine
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


def test_counters_add_up_over_processes() -> None:
    """The last counters of each process are added up. The four counters that always exist come first."""
    record = RunRecord()
    record.observe(ObservedPacketCounters({"received": 5, "too_late": 1}))
    record.observe(ObservedPacketCounters({"received": 9, "too_late": 1}))
    record.start_process()
    record.observe(ObservedPacketCounters({"received": 4, "dave_failures": 2}))
    assert list(record.packets.items()) == [
        ("received", 13),
        ("lost", 0),
        ("concealed", 0),
        ("dave_failures", 2),
        ("too_late", 1),
    ]
    assert record.activity == 0


def test_dropped_utterances_are_kept_apart() -> None:
    """Dropped utterances are recorded, but `accepted` does not contain them."""
    record = RunRecord()
    record.observe(heard("u1"))
    record.observe(heard("u2", "silence"))
    record.observe(BotCrashed("gone"))
    assert [one.utterance_id for one in record.accepted] == ["u1"]
    assert len(record.utterances) == 2
    assert record.crash == BotCrashed("gone")


def test_speeches_stand_in_time_order_and_are_replaced_when_over() -> None:
    """Lines are sorted by time, because steps may overlap. A finished line replaces its earlier version."""
    record = RunRecord()
    record.add_line(SpokenLine(4, "", 1, "Mira", "later", 9.0, 10.0))
    record.add_line(SpokenLine(5, "", 2, "Jonas", "sooner", 3.0, 4.0))
    record.add_line(SpokenLine(4, "", 1, "Mira", "later", 9.1, 10.2, over=True))
    assert [(one.reference, one.over) for one in record.lines] == [("sooner", False), ("later", True)]


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
