"""A small run of the screen benchmark: its parts measure what they claim."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from benchmarks.progress import NoProgress
from benchmarks.screen.bench import run, screen_targets
from benchmarks.screen.change_detection import generate_transitions, measure_change_detection
from benchmarks.screen.look_cost import HOUR_S, adaptive_looks, fixed_looks, simulate_hour
from benchmarks.screen.note_latency import tells_line
from benchmarks.screen.options import ScreenBenchOptions
from voice.screen.frame_diff import ChangeKind
from voice.screen.note_schedule import LookIntervals

if TYPE_CHECKING:
    from benchmarks.report import Json


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


@pytest.mark.parametrize(
    ("note", "tells"),
    [
        ("On Ada's screen: now: “[Ben] wait for the timer 317”", True),
        ("On Ada's screen: now: “Round 2 of 3 · [Ben] wait for the tirner 317 · Magneto HP 40”", True),
        ("On Ada's screen: now: “[Ben] wait for the timer”", False),
        ("On Ada's screen: now: “[Esme] nice shot 919”", False),
        ("", False),
    ],
)
def test_a_note_is_of_the_line_that_it_tells(note: str, tells: bool) -> None:
    """A note about something else does not count, and a letter that was read wrongly does not matter."""
    assert tells_line(note, "[Ben] wait for the timer 317") is tells


def test_a_line_that_was_never_noted_misses_the_target() -> None:
    """The median of the noted lines does not hide the others."""
    latency: dict[str, Json] = {"events": 12, "missed": 3, "event_to_note_s_p50": 0.3}
    [target] = [each for each in screen_targets({"latency": latency}, {}) if "new line" in each.name]
    assert (target.met, target.value, target.sample) == (False, 0.3, "seen in 9 of 12 lines")


def test_an_answer_that_did_not_come_misses_the_target_about_times() -> None:
    """The others may have come soon; people waited for this one in vain."""
    beside: dict[str, Json] = {"unanswered": 2, "besides_the_model_server_ms": {"p95": 900.0, "count": 13}}
    found = screen_targets({"answers": {"beside a share": beside}}, {})
    assert [each.met for each in found if each.name.startswith("beside a share")] == [False, False]


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
