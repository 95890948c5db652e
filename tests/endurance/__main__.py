"""`python -m tests.endurance`: runs the pieces one after the other and writes their figures (`make endurance`).

A piece that fails ends the run with a traceback; its message has the seed and the place. `--only PIECE` runs some of
them, and the file keeps the figures of the others.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import structlog
import typer

from benchmarks.report import Json
from tests.endurance import kills
from tests.endurance.databases import Databases, PostgresDatabases, SqliteFiles
from tests.endurance.report import EVENINGS, KILLS, LIVE_MINUTES, endurance_report, live_figures, read_figures

PIECES = ("kills", "kills-postgresql", "outages", "outages-postgresql", "evenings", "crawl", "live")


def main(arguments: Sequence[str]) -> int:
    """Run the chosen pieces and return the exit status."""
    chosen = _options(arguments)
    # The log of a thousand processes and of hours is not looked at; what matters is asserted.
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
    runs: Mapping[str, Callable[[], dict[str, Json]]] = {
        # First, because only a process with one thread may be forked.
        "kills": partial(_kills, chosen.kills, chosen.seed),
        "kills-postgresql": partial(_kills_on_postgresql, chosen.kills, chosen.seed),
        "outages": partial(_outages, chosen.outage_seconds),
        "outages-postgresql": partial(_outages_of_postgresql, chosen.outage_seconds),
        "evenings": partial(_evenings, chosen.evenings, chosen.seed),
        "crawl": _crawl,
        "live": partial(_live, chosen.minutes),
    }
    file: Path | None = chosen.json
    ours: dict[str, Json] = {}
    for piece in PIECES:
        if piece not in (chosen.only or PIECES):
            continue
        typer.echo(f"{piece} ...")
        begun = time.monotonic()
        found = runs[piece]()
        typer.echo(f"{piece}: {time.monotonic() - begun:.0f} s")
        # Read anew, because another piece may have run beside this one.
        ours = {**(ours if file is None else read_figures(file)), **found}
        if file is not None:
            file.write_text(endurance_report(ours).as_json(), "utf-8")
    for target in endurance_report(ours).targets:
        typer.echo(f"{target.name}: {target.value} ({target.goal})")
    return 0


def _kills(count: int, seed: int) -> dict[str, Json]:
    with TemporaryDirectory(prefix="roomtone-kills-") as folder:
        return {"kills": _killed(count, SqliteFiles(Path(folder)), seed)}


def _kills_on_postgresql(count: int, seed: int) -> dict[str, Json]:
    return {"kills on PostgreSQL": _killed(count, PostgresDatabases(), seed)}


def _killed(count: int, databases: Databases, seed: int) -> dict[str, Json]:
    begun, done = time.monotonic(), 0

    def on_kill() -> None:
        nonlocal done
        done += 1
        if done % 50 == 0:
            typer.echo(f"{done} kills")

    counts = kills.kill(count, databases, seed=seed, on_kill=on_kill)
    return counts.figures(seed=seed, wall_s=time.monotonic() - begun)


# The pieces below import what starts threads, so they are imported after the kills.


def _outages(seconds: float) -> dict[str, Json]:
    from tests.endurance.outages import OUTAGES, measure_outage

    with TemporaryDirectory(prefix="roomtone-outage-") as folder:
        files = SqliteFiles(Path(folder))
        return {name: asyncio.run(measure_outage(each, files, seconds=seconds)) for name, each in OUTAGES.items()}


def _outages_of_postgresql(seconds: float) -> dict[str, Json]:
    from tests.endurance.outages import POSTGRESQL_OUTAGES, measure_outage

    databases = PostgresDatabases()
    return {
        name: asyncio.run(measure_outage(each, databases, seconds=seconds)) for name, each in POSTGRESQL_OUTAGES.items()
    }


def _evenings(count: int, seed: int) -> dict[str, Json]:
    from rehearsal.roomtone.evenings.evening import play_evening

    turns, begun = 0, time.monotonic()
    for each in range(seed, seed + count):
        played = play_evening(each)
        assert not played.broken, f"seed {each}: {played.broken[0]} (roomtone rehearse --seeds 1 --seed {each})"
        turns += sum(" turn session-" in line for line in played.log)
    return {"evenings": {"evenings": count, "seed": seed, "turns": turns, "wall_s": round(time.monotonic() - begun)}}


def _crawl() -> dict[str, Json]:
    from tests.endurance.crawl import crawl_a_large_server

    with TemporaryDirectory(prefix="roomtone-crawl-") as folder:
        return {"crawl": asyncio.run(crawl_a_large_server(Path(folder)))}


def _live(minutes: float) -> dict[str, Json]:
    from tests.endurance.live_room import live_in_real_time

    samples = asyncio.run(live_in_real_time(60 * minutes, lambda sample: typer.echo(str(sample))))
    return {"live room": live_figures(samples)}


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.endurance", description="The long runs.")
    parser.add_argument("--only", action="append", choices=PIECES, help="Only this piece. May be repeated.")
    parser.add_argument("--kills", type=int, default=KILLS)
    parser.add_argument("--evenings", type=int, default=EVENINGS)
    parser.add_argument("--outage-seconds", type=float, default=3600.0, help="Room time of each outage.")
    parser.add_argument("--minutes", type=float, default=LIVE_MINUTES, help="Minutes in real time.")
    parser.add_argument("--seed", type=int, default=kills.SEED)
    parser.add_argument("--json", type=Path, help="Keep the figures in this file, with those of other pieces in it.")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
