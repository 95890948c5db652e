"""The report of the long runs: figures by piece, and targets. A piece that was not run keeps those of the file."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from benchmarks.machine import describe_machine
from benchmarks.report import BenchmarkReport, Target, at_least, at_most

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from benchmarks.report import Json

# What a long run does. Fewer is a smaller run, and the target says so.
KILLS, VIRTUAL_HOURS, LIVE_MINUTES = 1_000, 8.0, 60.0
# Memory may grow by this much in an hour: what folds leave, and the allocator's own ways.
MEMORY_MB_AN_HOUR = 4.0
# The most tokens that a prompt may have: in written scenarios, and with the bot's default settings.
MAX_TOKENS = {"virtual room": 10_000, "live room": 28_672}
# The pieces that kill, with what their targets call them.
KILLED = {"kills": "SIGKILLs", "kills on PostgreSQL": "SIGKILLs on PostgreSQL"}
OUTAGES = ("database away", "disk full", "PostgreSQL away", "PostgreSQL's disk full")
ROOMS = {"virtual room": "the virtual clock", "live room": "real time"}
_REMARK = (
    "Whatever is lost, doubled, damaged or broken ends the run, so these figures are of runs in which nothing was. "
    "Each piece has its own run, and the load is of the last one."
)


def read_figures(file: Path) -> dict[str, Json]:
    """Return the figures of a former report, by piece; none without a file."""
    if not file.is_file():
        return {}
    kept = json.loads(file.read_text("utf-8"))["ours"]
    assert isinstance(kept, dict)
    return kept


def endurance_report(ours: Mapping[str, Json]) -> BenchmarkReport:
    """Return the report of these figures."""
    return BenchmarkReport(
        bench="endurance",
        machine=describe_machine(),
        ours=dict(ours),
        targets=endurance_targets(ours),
        remarks=(_REMARK, *_moments(ours), *_too_short(ours)),
    )


def _moments(ours: Mapping[str, Json]) -> list[str]:
    """Return a remark on what the kills of each kind of database came amid."""
    return [
        f"The {name} came while: {counted}. Several can go on at once."
        for piece, name in KILLED.items()
        if (counted := _counted(_entry(_entry(ours, piece), "killed_while")))
    ]


def _counted(counts: Mapping[str, Json]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.items())


def _too_short(ours: Mapping[str, Json]) -> list[str]:
    """Return a remark for each room whose time was too short to tell an hour's growth: what it grew by all the same."""
    return [
        f"{piece}: the {60 * (_number(ours, piece, 'flat', 'hours') or 0):.0f} minutes after the warm-up are too "
        f"short to tell an hour's growth{_between(ours, piece)}. In them memory rose by {more:g} MB, so it is not "
        "shown to be flat."
        for piece in ROOMS
        if (more := _number(ours, piece, "flat", "more_memory_mb")) is not None
        and (_number(ours, piece, "flat", "memory_mb_an_hour") is None or _is_undecided(ours, piece))
    ]


def _interval(ours: Mapping[str, Json], piece: str, name: str) -> list[float]:
    """Return between which figures the growth of `name` lies, in MB an hour; empty if that is not known."""
    return _numbers(_entry(_entry(ours, piece), "flat").get(f"{name}_mb_an_hour_between"))


def _between(ours: Mapping[str, Json], piece: str) -> str:
    """Return between which figures the growth lies, if that is known."""
    between = _interval(ours, piece, "memory")
    return f", which lies between {between[0]:.3g} and {between[1]:.3g} MB" if between else ""


def _is_undecided(ours: Mapping[str, Json], piece: str) -> bool:
    """Return whether what is allowed lies within the interval of what memory grows by."""
    between = _interval(ours, piece, "memory")
    return bool(between) and between[0] <= MEMORY_MB_AN_HOUR < between[1]


def endurance_targets(ours: Mapping[str, Json]) -> tuple[Target, ...]:
    """Return every target. One whose piece was not run says so."""
    rooms = [target for piece, clock in ROOMS.items() for target in _room(piece, clock, ours)]
    return (
        *(
            at_least(
                f"{name} with nothing lost, doubled or damaged",
                f"{KILLS:,}",
                _number(ours, piece, "kills"),
                KILLS,
                _counted(_entry(_entry(ours, piece), "killed_in")),
            )
            for piece, name in KILLED.items()
        ),
        *(
            at_most(f"turns lost of an hour with {name}", "0", _number(ours, name, "lost"), 0, _said(ours, name))
            for name in OUTAGES
        ),
        *rooms,
    )


def _room(piece: str, clock: str, ours: Mapping[str, Json]) -> tuple[Target, ...]:
    least = VIRTUAL_HOURS if piece == "virtual room" else LIVE_MINUTES / 60
    most_tokens = MAX_TOKENS[piece]

    def flat(name: str) -> float | None:
        return _number(ours, piece, "flat", name)

    counted, lasted, warm_up_s, rose = flat("samples"), flat("hours"), flat("warm_up_s"), flat("more_memory_mb")
    sample = (
        ""
        if counted is None or lasted is None or warm_up_s is None
        else f"{counted:.0f} samples in {60 * lasted:.0f} min after the first {warm_up_s / 60:.0f}"
    )

    return (
        at_least(f"hours of a room in {clock}", f"{least:g}", _number(ours, piece, "hours"), least),
        at_most(
            f"{piece}: memory grows by, MB an hour",
            f"<= {MEMORY_MB_AN_HOUR:g}",
            flat("memory_mb_an_hour"),
            MEMORY_MB_AN_HOUR,
            sample if rose is None else f"{sample}; it rose by {rose:g} MB{_handed_out(ours, piece)}",
            undecided=_is_undecided(ours, piece),
        ),
        at_most(f"{piece}: more threads in the second half", "<= 0", flat("more_threads"), 0, sample),
        at_most(f"{piece}: more file descriptors in the second half", "<= 0", flat("more_descriptors"), 0, sample),
        at_most(
            f"{piece}: largest payload, tokens", f"<= {most_tokens:,}", flat("most_payload_tokens"), most_tokens, sample
        ),
    )


def _handed_out(ours: Mapping[str, Json], piece: str) -> str:
    """Return by how much that grows which malloc has handed out: growth of the rest is what it holds free, or Python's
    own small objects.
    """
    between = _interval(ours, piece, "allocated")
    return f", and what malloc has handed out by {between[0]:.3g} to {between[1]:.3g} MB an hour" if between else ""


def _said(ours: Mapping[str, Json], name: str) -> str:
    said = _number(ours, name, "turns_said_meanwhile")
    return "" if said is None else f"{said:.0f} turns"


def _entry(figures: Mapping[str, Json], name: str) -> Mapping[str, Json]:
    entry = figures.get(name)
    return entry if isinstance(entry, dict) else {}


def _number(figures: Mapping[str, Json], *path: str) -> float | None:
    *folders, name = path
    for folder in folders:
        figures = _entry(figures, folder)
    value = figures.get(name)
    return float(value) if isinstance(value, int | float) else None


def _numbers(values: Json) -> list[float]:
    return [float(each) for each in values if isinstance(each, int | float)] if isinstance(values, list) else []
