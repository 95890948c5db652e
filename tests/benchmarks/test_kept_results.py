"""The results that are kept with the documentation."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.document import LONG_RUNS, kept_results
from benchmarks.registry import BENCHMARKS

FOLDER = Path(__file__).parents[2] / "docs" / "benchmarks"
RESULTS = sorted(FOLDER.glob("*.json"))


@pytest.mark.parametrize("path", RESULTS, ids=lambda path: str(path.stem))
def test_kept_result_is_whole_and_names_no_place_of_a_machine(path: Path) -> None:
    """A kept result is complete and finished, and names no path of a machine."""
    text = path.read_text("utf-8")
    told = json.loads(text)
    assert {"bench", "machine", "ours", "targets"} <= told.keys()
    assert all({"name", "goal", "value", "met"} <= target.keys() for target in told["targets"])
    assert not any("not finished" in remark for remark in told["remarks"])
    assert "/tmp" not in text
    assert "/home" not in text


def test_every_kept_result_is_told() -> None:
    """A result that no benchmark names would be missing on the page."""
    named = {file for entry in BENCHMARKS for file in entry.results} | set(LONG_RUNS)
    assert set(kept_results()) <= named
