"""The results that are kept with the documentation."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.registry import BENCHMARKS

# Runs that are no benchmark of `roomtone bench`: they break what they measure, or take hours.
LONG_RUNS = {"endurance", "cluster-faults"}
RESULTS = sorted((Path(__file__).parents[2] / "docs" / "benchmarks").glob("*.json"))


@pytest.mark.parametrize("path", RESULTS, ids=lambda path: str(path.stem))
def test_kept_result_is_whole_and_names_no_place_of_a_machine(path: Path) -> None:
    """A kept result is of a known benchmark or of a long run, is complete and finished, and names no path of a
    machine.
    """
    text = path.read_text("utf-8")
    told = json.loads(text)
    assert {"bench", "machine", "ours", "peers", "targets"} <= told.keys()
    assert told["bench"] in {entry.name for entry in BENCHMARKS} | LONG_RUNS
    assert all({"name", "goal", "value", "met"} <= target.keys() for target in told["targets"])
    assert not any("not finished" in remark for remark in told["remarks"])
    assert "/tmp" not in text
    assert "/home" not in text
