"""The targets of the memory benchmark, checked against its figures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.memory.scores import kept_share
from benchmarks.memory.synthetic_evenings import TemplateSet
from benchmarks.report import Target, at_least, at_most

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.report import Json

# Summaries are compared after this many folds.
_TOLD_AFTER = 20


def memory_targets(ours: dict[str, Json]) -> tuple[Target, ...]:
    """Return every target with its measured value. A target that this run could not measure says so."""
    return (
        _against_recursive(ours),
        at_least(
            "facts told or found after 20 folds, held-out templates",
            ">= 95 %",
            _best_search(ours),
            0.95,
        ),
        at_most("invented names in our summaries", "0", _count_of(ours, "invented_names"), 0),
        at_most("budget violations", "0", _violations(ours), 0),
        at_most(
            "trigger and payload at 10,000 turns, besides tokenising, P99 ms",
            "<= 1 ms",
            _number(ours, "reply_path", "trigger_and_payload_ms", "p99"),
            1.0,
        ),
        at_most("memory search over 100,000 turns, P95 ms", "<= 50 ms", _search_p95(ours), 50.0),
    )


def _against_recursive(ours: dict[str, Json]) -> Target:
    name, goal = "planted facts in the injected text after 20 folds, ledger to recursive", ">= 2 times as many"
    held_out = TemplateSet.HELD_OUT.value
    shares: list[float | None] = []
    for contender in ("ledger", "recursive"):
        figures = ours.get(contender)
        of_set = figures.get(held_out) if isinstance(figures, dict) else None
        shares.append(kept_share(of_set, _TOLD_AFTER) if isinstance(of_set, dict) else None)
    ledger, recursive = shares
    if ledger is None or recursive is None:
        return Target(name, goal, "not measured", None)
    if recursive == 0:
        return Target(name, goal, f"{ledger:.0%} to none", ledger > 0)
    return at_least(name, goal, ledger / recursive, 2.0)


def _number(figures: Json, *path: str) -> float | None:
    for name in path:
        figures = figures.get(name) if isinstance(figures, dict) else None
    return float(figures) if isinstance(figures, int | float) else None


def _count_of(ours: dict[str, Json], name: str) -> float:
    """Return how many different items the figures of Roomtone's systems list under `name`."""
    found: set[str] = set()
    for figures in _of_sets(ours):
        each = figures.get(name)
        if isinstance(each, list):
            found.update(str(item) for item in each)
    return len(found)


def _violations(ours: dict[str, Json]) -> float:
    names = ("summaries_over_1200_chars", "summaries_not_ending_on_a_sentence", "payloads_over_budget")
    return sum(_number(figures, name) or 0 for figures in _of_sets(ours) for name in names)


def _of_sets(ours: dict[str, Json]) -> Iterator[dict[str, Json]]:
    for figures in ours.values():
        if isinstance(figures, dict):
            for templates in TemplateSet:
                of_set = figures.get(templates.value)
                if isinstance(of_set, dict) and "summaries" in of_set:
                    yield of_set


def _search_p95(ours: dict[str, Json]) -> float | None:
    """Return the time of the most complete search that was measured: the one with embeddings if there is one."""
    fused = _number(ours, "search_speed_with_embeddings", "p95_ms")
    return _number(ours, "search_speed", "p95_ms") if fused is None else fused


def _best_search(ours: dict[str, Json]) -> float | None:
    """Return the share of facts that the summary or the last search has. The last search is the most complete one."""
    searches = [name for name in ours if name.startswith("search: ")]
    if not searches:
        return None
    return _number(ours, searches[-1], TemplateSet.HELD_OUT.value, str(_TOLD_AFTER), "told_or_found")
