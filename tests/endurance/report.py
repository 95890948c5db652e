"""The report of the long runs: figures by piece, and targets. A piece that was not run keeps those of the file."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.load.growth import growth
from benchmarks.report import BenchmarkReport, Json, Target, at_least, at_most, describe_machine

# What a long run does. Fewer is a smaller run, and the target says so.
KILLS, EVENINGS, LIVE_MINUTES = 1_000, 1_000, 60.0
# Memory may grow by this much in an hour: what folds leave, and the allocator's own ways.
MEMORY_MB_AN_HOUR = 4.0
# How long joining may take on a server of 100,000 people, with 99 in the voice channel.
JOINS_WITHIN_S = 2.0
# The most tokens that a prompt may have with the bot's default settings.
MAX_TOKENS = 28_672
# The pieces that kill, with what their targets call them.
KILLED = {"kills": "SIGKILLs", "kills on PostgreSQL": "SIGKILLs on PostgreSQL"}
OUTAGES = ("database away", "disk full", "PostgreSQL away", "PostgreSQL's disk full")
_REMARK = (
    "Whatever is lost, doubled, damaged or broken ends the run, so these figures are of runs in which nothing was. "
    "Each piece has its own run, and the load is of the last one."
)


def read_figures(file: Path) -> dict[str, Json]:
    """Return the figures of a former report, by piece; none without a file."""
    return dict(json.loads(file.read_text("utf-8"))["ours"]) if file.is_file() else {}


def live_figures(samples: Sequence[dict[str, float]]) -> dict[str, Json]:
    """Return what a live room held, and by how much each figure grew from the second quarter of its time to the last.

    Half of the time lies between the middles of the two.
    """
    hours = samples[-1]["at_s"] / 3600
    grew = growth([{name: each[name] for name in each if name != "at_s"} for each in samples])
    memory = grew["rss_mb"]
    assert isinstance(memory, int | float)
    return {
        "hours": round(hours, 3),
        "memory_mb_an_hour": round(memory / (hours / 2), 2),
        "grew": grew,
        "most_payload_tokens": max(each["payload_tokens"] for each in samples),
        "samples": {name: [each[name] for each in samples] for name in samples[0]},
    }


def endurance_report(ours: Mapping[str, Json]) -> BenchmarkReport:
    """Return the report of these figures. A target whose piece was not run says so."""
    kept: Mapping[str, Any] = ours
    pieces = (*KILLED, *OUTAGES, "evenings", "crawl", "live room")
    targets = [target for piece in pieces for target in _targets(piece, kept.get(piece) or {})]
    return BenchmarkReport(
        bench="endurance", machine=describe_machine(), ours=dict(ours), targets=tuple(targets), remarks=(_REMARK,)
    )


def _targets(piece: str, figures: Mapping[str, Any]) -> tuple[Target, ...]:
    if piece in KILLED:
        counted = ", ".join(f"{name} {count}" for name, count in figures.get("killed_in", {}).items())
        name = f"{KILLED[piece]} with nothing lost, doubled or damaged"
        return (at_least(name, f"{KILLS:,}", figures.get("kills"), KILLS, counted),)
    if piece in OUTAGES:
        said = f"{figures['turns_said_meanwhile']} turns" if figures else ""
        return (at_most(f"turns lost of an hour with {piece}", "0", figures.get("lost"), 0, said),)
    if piece == "evenings":
        turns = f"{figures['turns']:,} turns" if figures else ""
        return (
            at_least(
                "simulated evenings that break no rule", f"{EVENINGS:,}", figures.get("evenings"), EVENINGS, turns
            ),
        )
    if piece == "crawl":
        used = ", ".join(f"{name} {count}" for name, count in figures.get("used", {}).items())
        joined = "a server of 100,000: in the voice channel after, s"
        return (
            at_most("everything that people can use: wrong requests, no answers", "0", 0 if figures else None, 0, used),
            at_most(joined, f"<= {JOINS_WITHIN_S:g}", figures.get("joined_s"), JOINS_WITHIN_S),
        )
    sample = f"{len(figures['samples']['at_s'])} samples" if figures else ""
    grew, hours = figures.get("grew", {}), LIVE_MINUTES / 60
    memory, most = figures.get("memory_mb_an_hour"), figures.get("most_payload_tokens")
    return (
        at_least("hours of a room in real time", f"{hours:g}", figures.get("hours"), hours),
        at_most(
            "live room: memory grows by, MB an hour", f"<= {MEMORY_MB_AN_HOUR:g}", memory, MEMORY_MB_AN_HOUR, sample
        ),
        at_most("live room: more threads in the last quarter", "<= 0", grew.get("threads"), 0, sample),
        at_most("live room: more file descriptors in the last quarter", "<= 0", grew.get("files"), 0, sample),
        at_most("live room: largest payload, tokens", f"<= {MAX_TOKENS:,}", most, MAX_TOKENS, sample),
    )
