"""Health reports each part that does not work in one sentence."""

from __future__ import annotations

import asyncio

import pytest

from bot.health import STARTING, DegradedPart, FaultKind, Health, HealthFault, format_degraded_part
from bot.texts.text import Text, verbatim
from tests.fakes.clock import FakeClock
from voice.circuit_breaker import Outage
from voice.errors import VoiceError

PROBLEM = VoiceError(
    "The voice kokoro at http://a/v1 cannot be reached. Check speaking.base_url and that the server is running."
)


@pytest.mark.parametrize(
    ("since", "until", "expected"),
    [
        (999.5, 1000.4, "has not worked for 1 second; Bea speaks, and I try it again with the next call."),
        (940.0, 1001.0, "has not worked for 60 seconds; Bea speaks, and I try it again in 1 second."),
        (880.0, 1300.0, "has not worked for 2 minutes; Bea speaks, and I try it again in 5 minutes."),
        (-6200.0, None, "has not worked for 2 hours; Bea speaks."),
        # The time of the next try has passed, but nobody has called the part since.
        (955.0, 990.0, "has not worked for 45 seconds; Bea speaks, and I try it again with the next call."),
    ],
)
def test_degraded_part_is_described_in_plain_words(since: float, until: float | None, expected: str) -> None:
    """The sentence contains the part, the duration, the fallback, the next try and the remedy."""
    part = DegradedPart(
        Text("The voice {model}", model="kokoro"), verbatim("Bea speaks"), Outage(since, until, PROBLEM)
    )
    assert format_degraded_part(part, 1000.0) == f"The voice kokoro {expected} {PROBLEM}"


def test_missing_part_stays_missing() -> None:
    """A missing part counts as broken from the start and is never tried again."""
    clock = FakeClock()
    health = Health(clock)
    clock.advance(10.0)
    health.add_missing(Text("My voice"), instead=verbatim("I write"), problem=VoiceError("There is none."))
    clock.advance(600.0)
    assert health.summary() == "My voice has not worked for 10 minutes; I write. There is none."


def test_summary_names_every_degraded_part() -> None:
    """The summary is empty while everything works, and otherwise names every part that does not."""
    clock, found = FakeClock(), list[DegradedPart]()
    health = Health(clock)
    health.add_check(list)
    health.add_check(lambda: found)
    assert health.summary() == ""
    found += [
        DegradedPart(verbatim(what), verbatim("I wait"), Outage(0.0, None, VoiceError("")))
        for what in ("One", "Another")
    ]
    clock.advance(3.0)
    assert health.summary() == "One has not worked for 3 seconds; I wait. Another has not worked for 3 seconds; I wait."


def test_it_is_not_ready_before_everything_is_open() -> None:
    """Until everything is open, the fault is that the bot is starting. Afterwards each check gives its faults."""
    health, found = Health(FakeClock()), list[HealthFault]()
    health.add_fault_check(lambda: found)
    assert health.faults() == [STARTING]
    health.started()
    assert health.faults() == []
    found.append(HealthFault(FaultKind.DISK, "The disk is full."))
    assert health.faults() == found
    found.append(HealthFault(FaultKind.DRAINING, "I am ending."))
    assert health.faults() == found[1:]


def test_degraded_parts_are_no_faults() -> None:
    """A part with a stand-in does not keep the bot from its work; it is counted."""
    health = Health(FakeClock())
    health.started()
    health.add_missing(Text("My voice"), instead=verbatim("I write"), problem=VoiceError("There is none."))
    assert (health.degraded_count(), health.faults()) == (1, [])


async def test_a_task_that_ended_is_named() -> None:
    """A task that should run until the process ends, and has ended, is dead."""
    health, end = Health(FakeClock()), asyncio.Event()
    task = asyncio.create_task(end.wait(), name="retention")
    health.started([task])
    assert health.dead_tasks() == []
    end.set()
    await task
    assert health.dead_tasks() == ["retention"]
