"""A small run of the screen benchmark: its parts measure what they claim."""

from __future__ import annotations

import random

import pytest

from benchmarks.progress import NoProgress
from benchmarks.screen.bench import run
from benchmarks.screen.change_detection import generate_transitions, measure_change_detection
from benchmarks.screen.look_cost import HOUR_S, adaptive_looks, fixed_looks, simulate_hour
from benchmarks.screen.options import ScreenBenchOptions
from voice.screen.frame_diff import ChangeKind
from voice.screen.note_schedule import LookIntervals


def test_transitions_are_labelled_and_the_same_again() -> None:
    """Every kind of transition is made for every scene, and the same seed makes the same pictures."""
    pairs = list(generate_transitions(2, 1))
    assert len({each.kind for each in pairs}) * 2 == len(pairs)
    assert [each.after for each in generate_transitions(2, 1)] == [each.after for each in pairs]
    assert measure_change_detection(2, 1, NoProgress())["right"] == 1.0


def test_an_hour_is_looked_at_both_ways() -> None:
    """The adaptive schedule looks at the first picture and not at a still screen. After a cut it waits for the next
    possible look.
    """
    seconds = simulate_hour(random.Random(1))
    assert len(seconds) == HOUR_S
    still = [ChangeKind.FIRST, *[ChangeKind.SAME] * 99]
    pace = LookIntervals(active_s=10, idle_s=30)
    assert adaptive_looks(still, pace).looks == 1
    assert fixed_looks(still, 10).looks == 10
    cut = [ChangeKind.FIRST, ChangeKind.SAME, ChangeKind.CUT, *[ChangeKind.SAME] * 20]
    assert adaptive_looks(cut, pace).cut_waits_s == (1.0,)
    assert fixed_looks(cut, 10).cut_waits_s == (8.0,)


@pytest.mark.slow
@pytest.mark.asyncio
async def test_a_small_run_has_a_whole_report() -> None:
    """A small run with the real reader has a complete report."""
    report = (await run(ScreenBenchOptions.quick(), NoProgress())).as_dict()
    assert report["bench"] == "screen"
    assert set(report["ours"]) == {"gate", "reading", "latency", "hour"}  # type: ignore[arg-type]
    met = [target["met"] for target in report["targets"]]  # type: ignore[union-attr,index,call-overload]
    # Answers need the bot's other models, which a small run leaves out.
    assert [each is None for each in met] == [False] * 5 + [True] * 2
