"""Simulated evenings break no rule of the memory and of trust, and are played again alike."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from rehearsal.roomtone.evenings.plan import make_plan
from rehearsal.roomtone.evenings.player import play_evening

pytestmark = pytest.mark.slow

SEEDS = range(1, 21)
_PRINT = "from rehearsal.roomtone.evenings.player import play_evening; print(*play_evening({seed}).log, sep='\\n')"


@pytest.mark.parametrize("seed", SEEDS)
def test_an_evening_breaks_no_rule(seed: int) -> None:
    """Whatever people do and whatever fails, no rule is broken."""
    assert play_evening(seed).broken == ()


def test_a_seed_plays_alike_in_another_process() -> None:
    """The order of hashes and the memory of another process do not change this evening."""
    here = play_evening(SEEDS[0]).log
    for hash_seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        told = subprocess.run(
            [sys.executable, "-c", _PRINT.format(seed=SEEDS[0])],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        assert tuple(told.stdout.splitlines()) == here


def test_a_plan_follows_from_its_seed() -> None:
    """The same seed makes the same plan, and another one another."""
    assert make_plan(1) == make_plan(1)
    assert make_plan(1) != make_plan(2)
