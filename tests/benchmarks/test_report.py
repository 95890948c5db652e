"""The outcome of a benchmark, as JSON and as targets."""

from __future__ import annotations

import json

from benchmarks.machine import Machine
from benchmarks.report import BenchmarkReport, Target, at_least, at_most

MACHINE = Machine("Linux 6", "a processor", 2, 8.0, "3.11.7", "0.1.0", 0.5)


def test_json_has_what_is_promised() -> None:
    """The JSON has bench, machine, ours, peers and targets, and each target has name, goal, value and met."""
    report = BenchmarkReport(
        "memory", MACHINE, {"ledger": {"kept": 0.5}}, {"other": {}}, (at_most("names", "0", 0, 0),)
    )
    told = json.loads(report.as_json())
    assert {"bench", "machine", "ours", "peers", "targets"} <= told.keys()
    assert told["targets"] == [{"name": "names", "goal": "0", "value": 0, "met": True, "sample": ""}]
    assert told["machine"]["cores"] == 2


def test_target_is_met_at_its_very_goal() -> None:
    """A value that just reaches the goal meets the target."""
    assert at_least("share", ">= 95 %", 0.95, 0.95).met is True
    assert at_most("time", "<= 1 ms", 1.0, 1.0).met is True


def test_target_is_missed_beyond_its_goal() -> None:
    """A value that misses the goal by a little misses the target."""
    assert at_least("share", ">= 95 %", 0.9499, 0.95).met is False
    assert at_most("time", "<= 1 ms", 1.0001, 1.0).met is False


def test_what_was_not_measured_is_neither_met_nor_missed() -> None:
    """A target without a value is neither met nor missed."""
    assert at_least("share", ">= 95 %", None, 0.95) == Target("share", ">= 95 %", "not measured", None)


def test_a_failure_misses_the_target_of_the_others() -> None:
    """A value that leaves out what failed meets no target, and neither does a run in which all failed."""
    assert at_most("time", "<= 1 ms", 0.5, 1.0, failed=0).met is True
    assert at_most("time", "<= 1 ms", 0.5, 1.0, failed=1).met is False
    assert at_most("time", "<= 1 ms", None, 1.0, failed=8).met is False
