"""`python -m tests.cluster_faults`: breaks a cluster of bots in every way and writes what was seen (`make endurance`).

It runs in a network of its own (Linux, root), because Ray listens on every address.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import structlog
import typer

from benchmarks.cluster.ray_nodes import in_own_network
from benchmarks.report import BenchmarkReport
from tests.cluster_faults.faults import FAULTS, NORMAL, QUICK
from tests.cluster_faults.report import faults_report, missed
from tests.cluster_faults.run import RunOptions, run

_INSIDE = "ROOMTONE_FAULTS_IN_OWN_NETWORK"


def main(arguments: Sequence[str]) -> int:
    """Run the faults and return the exit status: 1 if any target was missed, which a sentence names."""
    chosen = _options(arguments)
    if _INSIDE not in os.environ:
        inner = in_own_network(sys.executable, "-m", "tests.cluster_faults", *arguments)
        return subprocess.run(inner, env={**os.environ, _INSIDE: "1"}, check=False).returncode
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
    options = RunOptions(
        rooms=chosen.rooms,
        nodes=chosen.nodes,
        away_s=chosen.away_seconds,
        times=chosen.times,
        at_once=chosen.at_once,
        faults=tuple(chosen.only or FAULTS),
        pace=QUICK if chosen.quick else NORMAL,
    )
    folder = Path(tempfile.mkdtemp(prefix="roomtone-faults-"))
    try:
        seen = asyncio.run(run(options, folder, typer.echo))
    finally:
        if chosen.keep is not None:
            shutil.copytree(folder, chosen.keep, symlinks=True, dirs_exist_ok=True)
        shutil.rmtree(folder, ignore_errors=True)
    report = faults_report(seen, options)
    if chosen.json is not None:
        chosen.json.write_text(report.as_json(), "utf-8")
    return print_report(report, typer.echo)


def print_report(report: BenchmarkReport, say: Callable[[str], None]) -> int:
    """Say what every target came to, then a sentence for each that was missed. Returns the exit status."""
    for target in report.targets:
        say(f"{target.name}: {target.value} ({target.goal}){'' if target.met else ' - NOT MET'}")
    sentences = missed(report)
    for sentence in sentences:
        say(sentence)
    return 1 if sentences else 0


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.cluster_faults", description="Breaks a cluster of bots.")
    parser.add_argument("--rooms", type=int, default=6)
    parser.add_argument("--nodes", type=int, default=3, help="Ray's nodes, with one bot for each.")
    parser.add_argument("--only", action="append", choices=FAULTS, help="Only this fault. May be repeated, in order.")
    parser.add_argument("--times", type=int, default=1, help="How often each fault is tried.")
    parser.add_argument("--away-seconds", type=float, default=60.0, help="How long PostgreSQL is away.")
    parser.add_argument("--at-once", type=int, default=2, help="Rooms in which somebody speaks at the same time.")
    parser.add_argument("--quick", action="store_true", help="People speak for a shorter time before and after.")
    parser.add_argument("--json", type=Path, help="Write the figures into this file.")
    parser.add_argument("--keep", type=Path, help="Keep the nodes' folders, with their logs, here.")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
