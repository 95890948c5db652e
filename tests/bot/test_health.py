"""The one list of what is wrong."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from bot.health import (
    SEE_LOG,
    STARTING,
    Actor,
    FaultDates,
    FaultKind,
    Health,
    HealthFault,
    database_fault,
    outage_fault,
    without_repeats,
)
from bot.texts.text import Text, in_language, verbatim
from compaction.errors import StoreError
from tests.fakes.clock import FakeClock
from voice.circuit_breaker import Outage
from voice.errors import VoiceError

PROBLEM = VoiceError("The voice kokoro at http://a/v1 cannot be reached. Check speaking.base_url.").for_people(
    "The voice cannot be reached."
)
DISK = HealthFault(FaultKind.DISK, Text("The disk is full."), "Make room.")
DEAF = HealthFault(FaultKind.ROOM_DEAF, Text("I hear nobody."), acts=Actor.NOBODY)


def started(clock: FakeClock | None = None) -> Health:
    """Return the health of a process in which everything is open."""
    health = Health(clock or FakeClock())
    health.started()
    return health


@pytest.mark.parametrize(
    ("since", "lasts"),
    [(999.5, "1 second"), (940.0, "60 seconds"), (880.0, "2 minutes"), (-6200.0, "2 hours"), (None, "")],
)
def test_status_says_what_since_when_and_who_must_act(since: float | None, lasts: str) -> None:
    """In this order. A time that does not matter is left out. The remedy is for the operator alone."""
    told = replace(DISK, since=since).status(1000.0)
    shown = in_language(told, "en")
    assert (places := [shown.find(part) for part in (DISK.what, lasts, "owner of this bot")]) == sorted(places)
    assert ("ago" in told) is bool(lasts)
    assert ("Make room." in told, "Make room." in shown) == (True, False)


@pytest.mark.parametrize("retry_at", [None, 1300.0])
def test_a_part_that_fails_is_told_with_what_happens_instead(retry_at: float | None) -> None:
    """Also whether the bot tries it again. The operator reads the address, and people do not."""
    fault = outage_fault(
        FaultKind.VOICE, Text("The voice"), verbatim("Bea speaks"), Outage(940.0, retry_at, PROBLEM), blocks=False
    )
    assert ("again" in fault.what) is (retry_at is not None)
    assert (fault.since, fault.remedy.endswith(SEE_LOG)) == (940.0, True)
    assert not fault.blocks
    assert "http://a/v1" in fault.status(1000.0)
    for language in ("en", "de"):
        assert "http" not in in_language(fault.status(1000.0), language)


def test_a_database_that_refuses_is_told_with_its_cause() -> None:
    """The channel is told, and that it is over; people read no path."""
    error = StoreError("/data/roomtone.db is full.")
    error.people = "The disk is full."
    fault = database_fault(error)
    assert fault.over
    assert "/data" in fault.sentence
    assert "/data" not in in_language(fault.sentence, "en")


def test_what_the_process_and_the_room_say_alike_is_told_once() -> None:
    """The same sentence, whatever its cause, and since when it was seen first: the room sees it with its next turn."""
    assert without_repeats([replace(DISK, since=3.0), DEAF, replace(DISK, since=9.0)]) == [
        DEAF,
        replace(DISK, since=3.0),
    ]


def test_each_fault_is_dated_from_its_first_look_until_it_is_gone() -> None:
    """Also if a number in its sentence changes. A check that knows the time keeps it."""
    clock = FakeClock()
    dates, begun = FaultDates(clock), clock.monotonic()
    known = replace(DEAF, since=7.0)
    for free in (12, 9):
        disk = HealthFault(FaultKind.DISK, Text("{free} MB are left.", free=free))
        assert dates.dated([disk, known]) == [replace(disk, since=begun), known]
        clock.advance(10.0)
    assert dates.dated([]) == []
    assert dates.dated([DISK]) == [replace(DISK, since=clock.monotonic())]


def test_everything_works_only_if_the_list_is_empty() -> None:
    """It has what every check finds, what is missing, and the rooms; and that the bot starts, until all is open."""
    clock, found, rooms = FakeClock(), list[HealthFault](), list[HealthFault]()
    health = Health(clock)
    health.add_check(lambda: found)
    health.rooms = lambda: rooms
    assert [fault.what for fault in health.faults()] == [STARTING.what]
    health.started()
    assert health.faults() == []
    found.append(DISK)
    rooms.append(DEAF)
    health.add_missing(FaultKind.VOICE, Text("My voice"), instead=verbatim("I write"), problem=PROBLEM)
    assert [fault.kind for fault in health.faults()] == [FaultKind.DISK, FaultKind.VOICE, FaultKind.ROOM_DEAF]
    assert [fault.kind for fault in health.process_faults()] == [FaultKind.DISK, FaultKind.VOICE]
    assert [fault.blocks for fault in health.faults()] == [True, False, True]


def test_while_the_bot_ends_nothing_else_is_told() -> None:
    """Nobody shall mend what ends anyway."""
    health, ending = started(), HealthFault(FaultKind.DRAINING, Text("I am ending."))
    health.add_check(lambda: [DISK])
    health.rooms = lambda: [ending]
    assert health.faults() == [ending]


async def test_a_task_that_ended_is_a_fault_that_only_a_restart_mends() -> None:
    """A task that should run until the process ends is named."""
    health, end = Health(FakeClock()), asyncio.Event()
    task = asyncio.create_task(end.wait(), name="retention")
    health.started([task])
    assert health.faults() == []
    end.set()
    await task
    (fault,) = health.faults()
    assert fault.needs_restart
    assert "retention" in fault.what
