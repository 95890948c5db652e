"""Rows of the tables about rooms in processes: what they take, how long a machine takes to leave, what faults did."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from benchmarks.report import Json

ROOM_HEAD = (
    "rooms",
    "in a process",
    "memory a room, MB",
    "rooms of the machine that left",
    "until all were elsewhere, s",
)
_ROOM_FIGURES = ("rooms", "rooms_each", "own_memory_mb_a_room", "rooms_that_left", "drain_s")
# Faults after which rooms have to hear again within some seconds.
_LOSING_ROOMS = ("room", "node", "frozen", "drained")
FAULT_HEAD = (
    "fault",
    "seen",
    "hears again after, s (the target)",
    "first stored speech sent after, s",
    "speech that is not stored, s",
    "lost sentences",
)


def room_rows(report: Mapping[str, Json]) -> Iterator[tuple[str, ...]]:
    """Yield one row for each run of rooms in processes. Memory is what a room shares with nobody."""
    for run in _ours(report).values():
        if isinstance(run, dict) and all(name in run for name in _ROOM_FIGURES):
            yield tuple(_number(run[name]) for name in _ROOM_FIGURES)


def fault_rows(report: Mapping[str, Json]) -> Iterator[tuple[str, ...]]:
    """Yield one row for each time that rooms lost their process, with the times of all its rooms. A room may hear
    before anybody speaks there, so the first stored speech can be later. Speech that is not stored began before the
    fault, where somebody was in mid-sentence.
    """
    for name in _LOSING_ROOMS:
        tries = _ours(report).get(name)
        seen = tries if isinstance(tries, list) else []
        for outcome in seen:
            if isinstance(outcome, dict):
                times = [_listed(outcome.get(each)) for each in ("hears_after_s", "heard_again_s", "missing_s")]
                lost = outcome.get("sentences_lost")
                told = "; ".join(str(each) for each in lost) if isinstance(lost, list) else ""
                yield name, seen_times(len(seen)), *times, told or "none"


def seen_times(count: int) -> str:
    """Return how often something was tried, as a sample says it: once is an example and no rate."""
    return "seen once" if count == 1 else f"seen {count} times"


def _ours(report: Mapping[str, Json]) -> Mapping[str, Json]:
    ours = report.get("ours")
    return ours if isinstance(ours, dict) else {}


def _numbers(values: Json) -> list[float]:
    listed = values if isinstance(values, list) else []
    return [float(each) for each in listed if isinstance(each, int | float)]


def _listed(values: Json) -> str:
    return ", ".join(f"{each:.1f}" for each in _numbers(values))


def _number(value: Json) -> str:
    return f"{value:g}" if isinstance(value, int | float) else "-"
