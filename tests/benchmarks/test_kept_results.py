"""The results that are kept with the documentation."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from benchmarks.endpoint.bench import endpoint_targets
from benchmarks.receive.targets import receive_targets
from benchmarks.registry import BENCHMARKS
from benchmarks.reply.targets import reply_targets
from benchmarks.store.bench import store_targets

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.report import Target

# Runs that are no benchmark of `roomtone bench`: they break what they measure, or take hours.
LONG_RUNS = {"endurance", "cluster-faults"}
FOLDER = Path(__file__).parents[2] / "docs" / "benchmarks"
# Results whose targets follow from the figures in the same file, and how.
JUDGED: dict[str, Callable[[Any], tuple[Target, ...]]] = {
    "receive": lambda told: receive_targets(told["ours"]),
    "endpoint": lambda told: endpoint_targets(told["ours"]),
    "store": lambda told: store_targets(told["ours"]),
    "reply": lambda told: reply_targets(told["ours"], told["peers"]),
}
RESULTS = sorted(FOLDER.glob("*.json"))


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


@pytest.mark.parametrize("name", JUDGED)
def test_kept_targets_are_those_of_the_kept_figures(name: str) -> None:
    """A target that was added or named anew is judged by the figures that were kept, and none of them is left out."""
    told = json.loads((FOLDER / f"{name}.json").read_text("utf-8"))
    assert told["targets"] == [asdict(target) for target in JUDGED[name](told)]
