"""The record keeps what was reported, and wakes whoever waits for it."""

from __future__ import annotations

import asyncio

from rehearsal.runner.observation import CompanionCrashed, PacketFigures, Problem, UtteranceHeard
from rehearsal.runner.record import Record, Spoken
from tests.rehearsal.virtual_time import run_virtually


def heard(name: str, reason: str | None = None) -> UtteranceHeard:
    """Return an utterance."""
    return UtteranceHeard(name, 1, "hello", 1.0, 2.0, 2.5, dropped_reason=reason)


def test_waiting_ends_with_the_report_that_fulfils_it() -> None:
    """Not with an earlier one, and not at the bound."""

    async def scene() -> tuple[bool, float]:
        record, loop = Record(), asyncio.get_running_loop()
        began = loop.time()
        loop.call_later(1.0, record.observe, Problem("a", ""))
        loop.call_later(2.0, record.observe, heard("u1"))
        return await record.until(lambda: bool(record.heard), timeout_s=9.0), loop.time() - began

    assert run_virtually(scene()) == (True, 2.0)


def test_waiting_is_bounded_and_leaves_nothing_behind() -> None:
    """False at the bound; the same record can be waited on again."""

    async def scene() -> tuple[bool, bool]:
        record = Record()
        first = await record.until(lambda: bool(record.heard), timeout_s=3.0)
        record.observe(heard("u1"))
        return first, await record.until(lambda: bool(record.heard), timeout_s=0.0)

    assert run_virtually(scene()) == (False, True)


def test_counters_add_up_over_processes() -> None:
    """Within one process the last report counts; the four that always exist come first."""
    record = Record()
    record.observe(PacketFigures({"received": 5, "too_late": 1}))
    record.observe(PacketFigures({"received": 9, "too_late": 1}))
    record.new_process()
    record.observe(PacketFigures({"received": 4, "dave_failures": 2}))
    assert list(record.packets.items()) == [
        ("received", 13),
        ("lost", 0),
        ("concealed", 0),
        ("dave_failures", 2),
        ("too_late", 1),
    ]
    assert record.activity == 0


def test_dropped_utterances_are_kept_apart() -> None:
    """They were heard, but the room never saw them."""
    record = Record()
    record.observe(heard("u1"))
    record.observe(heard("u2", "silence"))
    record.observe(CompanionCrashed("gone"))
    assert [one.utterance_id for one in record.taken] == ["u1"]
    assert len(record.heard) == 2
    assert record.crash == CompanionCrashed("gone")


def test_speeches_stand_in_time_order_and_are_replaced_when_over() -> None:
    """Steps may run at the same time."""
    record = Record()
    record.say(Spoken(4, "", 1, "Mira", "later", 9.0, 10.0))
    record.say(Spoken(5, "", 2, "Jonas", "sooner", 3.0, 4.0))
    record.say(Spoken(4, "", 1, "Mira", "later", 9.1, 10.2, over=True))
    assert [(one.reference, one.over) for one in record.speeches] == [("sooner", False), ("later", True)]


def test_presence_is_for_the_whole_time() -> None:
    """Who left in the middle did not hear all of it."""
    record = Record()
    record.enter(1, 0.0)
    record.enter(2, 5.0)
    record.leave(1, 8.0)
    record.leave(3, 8.0)
    record.enter(1, 20.0)
    assert record.present(6.0, 7.0) == (1, 2)
    assert record.present(6.0, 9.0) == (2,)
    assert record.present(21.0, 22.0) == (1, 2)
