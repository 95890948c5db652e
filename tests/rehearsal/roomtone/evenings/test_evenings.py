"""Simulated evenings break no rule of the memory and of trust, are played again alike, and have every kind of step."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache

import pytest

from rehearsal.roomtone.evenings.evening import play_evening
from rehearsal.roomtone.evenings.plan import Act, Fault, count_steps, make_plan

pytestmark = pytest.mark.slow

SEEDS = range(1, 21)
# What an evening has found of the bot, by its seed: it is played for good.
FOUND = {
    1014: "a person's words become turns in the order in which they were said, though the recogniser hung",
    1020: "what is typed while the prompt for speech is prepared takes its number, and is missing in that prompt",
    1050: "who says something after they were forgotten keeps it, also in a turn that others began before",
    1475: "who is told to end while the database fails ends, and does not take it for a failed write alone",
    1498: "a summary tells of a screen that was folded before it, so it goes with that",
    2084: "a reply in progress that quotes somebody who was forgotten goes from the memory as it does from the store",
    4137: "a process ends between the storing of a note and of what that makes pending, and the next has few live",
    4235: "what Discord did not let the bot take back is tried again soon",
    5244: "what is typed after a room has crashed waits for the next, and is not lost in the old one",
    5861: "a reply that was begun before its words were forgotten leaves them in no memory, also before it is stored",
}
# Calls are pressed in both.
PLAYED_AGAIN = (5, 15)
_PRINT = (
    "import sys; from rehearsal.roomtone.evenings.evening import play_evening; "
    "print(*(play_evening(int(seed)).digest for seed in sys.argv[1:]))"
)

played = cache(play_evening)


@pytest.mark.parametrize("seed", sorted({*SEEDS, *FOUND}))
def test_an_evening_breaks_no_rule(seed: int) -> None:
    """Whatever people do and whatever fails, no rule is broken."""
    assert played(seed).broken == ()


def test_a_seed_plays_alike_in_another_process() -> None:
    """The order of hashes, which is random here, and the memory of another process change nothing that is said, posted,
    stored or asked.
    """
    told = subprocess.run(
        [sys.executable, "-c", _PRINT, *map(str, PLAYED_AGAIN)],
        env={**os.environ, "PYTHONHASHSEED": "1"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    assert told == [played(seed).digest for seed in PLAYED_AGAIN]


def test_every_kind_of_step_and_of_fault_occurs() -> None:
    """Nothing is rare: people press, type and share as often as they ask."""
    counts = count_steps(map(make_plan, SEEDS))
    assert set(counts) == {*Act, *Fault}
    assert min(counts[each] for each in (Act.PRESS, Act.TYPE, Act.SHOW)) >= counts[Act.ASK]


def test_calls_are_pressed_in_every_third_evening() -> None:
    """Presses meet a call that waits for one."""
    assert sum(played(seed).presses > 0 for seed in SEEDS) >= len(SEEDS) / 3
