"""Comparing the results with the targets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.memory.targets import memory_targets

if TYPE_CHECKING:
    from benchmarks.report import Json


def contender(share: float, *, names: tuple[str, ...] = (), over: int = 0) -> dict[str, Json]:
    """Return a memory system's figures on the held-out evenings."""
    of_set: dict[str, Json] = {
        "after_folds": {"20": {"kept": share}},
        "summaries": 20,
        "invented_names": list(names),
        "summaries_over_1200_chars": over,
        "summaries_not_ending_on_a_sentence": 0,
        "payloads_over_budget": 0,
    }
    return {"held_out": of_set}


def test_whole_run_meets_or_misses_each_target() -> None:
    """In a complete run every target has a value and is met or missed."""
    ours: dict[str, Json] = {
        "ledger": contender(0.8, names=("Max",)),
        "recursive": contender(0.5, over=2),
        "search: words": {"held_out": {"20": {"told_or_found": 0.9}}},
        "search: words and meaning": {"held_out": {"20": {"told_or_found": 0.97}}},
        "reply_path": {"trigger_and_payload_ms": {"p99": 0.8}},
        "search_speed": {"p95_ms": 40.0},
        "search_speed_with_embeddings": {"p95_ms": 60.0},
    }
    met = [target.met for target in memory_targets(ours)]
    values = [target.value for target in memory_targets(ours)]
    assert met == [False, True, False, False, True, False]
    assert values == [1.6, 0.97, 1, 2, 0.8, 60.0]


def test_recursive_that_keeps_nothing_is_beaten_by_anything() -> None:
    """If the recursive summary keeps nothing, the target is met without a ratio."""
    first = memory_targets({"ledger": contender(0.8), "recursive": contender(0.0)})[0]
    assert first.met is True
    assert first.value == "80% to none"


def test_run_without_a_model_says_what_it_could_not_measure() -> None:
    """A target that was not measured is not missed."""
    targets = memory_targets({})
    assert targets[0].met is None
    assert targets[1].met is None
