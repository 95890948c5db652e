"""Measures what 1, 4 and 16 processes store in one PostgreSQL, each for a server of its own.

`python -m tests.cluster_faults.writers [--json FILE]`. Each stores as many turns a second as six busy rooms have, so
that not the cores of a small machine are the limit, but what waits for each other. In the last row another process
hangs in the middle of a write for a server of its own.
"""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
import time
from asyncio.subprocess import Process
from collections.abc import Sequence
from pathlib import Path

from pydantic import SecretStr

from benchmarks.figures import percentile
from benchmarks.report import BenchmarkReport, Json, at_least, describe_machine
from bot.clock import SystemClock
from bot.store.claims import claim_room, fenced
from bot.store.database import open_database
from bot.store.turns import SqlTurnStore
from compaction.model import SessionId
from tests.bot.store.frozen_writer import emit
from tests.cluster_faults.__main__ import print_report
from tests.compaction.turn_store_contract import turn
from tests.postgres import running_server

PROCESSES = (1, 4, 16)
# Of each. In a busy room somebody says something every two seconds.
TURNS_A_SECOND = 3.0
SECONDS = 30.0
HANGING = "4, and one that hangs"
LEAST_SHARE = 0.95


async def write(url: str, server: int, seconds: float) -> None:
    """Claim a server, say so, and store turns for so long. Then say how long each took, in ms.

    0 s: hang in the middle of a write.
    """
    async with open_database(SecretStr(url)) as database:
        async with database.writing() as connection:
            mine = fenced(database, await claim_room(connection, server))
        store, session = SqlTurnStore(mine, SystemClock()), SessionId(f"server-{server}")
        await store.append_turn(session, turn(0))
        if not seconds:
            async with mine.writing():
                emit("ready")
                signal.raise_signal(signal.SIGSTOP)
        emit("ready")
        await asyncio.to_thread(sys.stdin.readline)
        begun_at, taken_s = time.monotonic(), list[float]()
        while (due_at := begun_at + len(taken_s) / TURNS_A_SECOND) < begun_at + seconds:
            await asyncio.sleep(due_at - time.monotonic())
            if time.monotonic() > begun_at + seconds:
                break
            asked_at = time.monotonic()
            await store.append_turn(session, turn(len(taken_s) + 1))
            taken_s.append(time.monotonic() - asked_at)
        emit(*(round(1_000 * each, 1) for each in taken_s))


async def measure(count: int, *, seconds: float, hangs: bool = False) -> dict[str, Json]:
    """Return how many turns so many processes store a second, together, and how long one takes. `hangs`: beside another
    one that hangs.
    """
    server = await asyncio.to_thread(running_server)
    name = await asyncio.to_thread(server.create)
    url = server.url(name).get_secret_value()
    async with open_database(SecretStr(url)):
        pass
    started: list[Process] = []
    try:
        for number in range(count + hangs):
            for_s = 0.0 if number == count else seconds
            words = ("-m", "tests.cluster_faults.writers", "--write", url, str(number + 1), str(for_s))
            pipe = asyncio.subprocess.PIPE
            process = await asyncio.create_subprocess_exec(sys.executable, *words, stdin=pipe, stdout=pipe)
            started.append(process)
            assert process.stdout is not None
            assert await process.stdout.readline() == b"ready\n"
        writing = started[:count]
        for process in writing:
            assert process.stdin is not None
            process.stdin.write(b"go\n")
        said = [(await process.communicate())[0].split() for process in writing]
    finally:
        for process in started:
            if process.returncode is None:
                process.kill()
                await process.wait()
    taken_ms = [float(each) for of_one in said for each in of_one]
    return {
        "turns_a_second": round(len(taken_ms) / seconds, 1),
        "wanted": count * TURNS_A_SECOND,
        "ms_a_turn_p50": percentile(taken_ms, 0.5),
        "ms_a_turn_p99": percentile(taken_ms, 0.99),
    }


async def report() -> BenchmarkReport:
    """Return all measurements, judged."""
    rates = {f"{count}": await measure(count, seconds=SECONDS) for count in PROCESSES}
    rates[HANGING] = await measure(4, seconds=SECONDS, hangs=True)
    return BenchmarkReport(
        bench="store-writers",
        machine=describe_machine(),
        ours={f"processes: {name}": figures for name, figures in rates.items()},
        targets=tuple(
            at_least(
                f"share of the turns that are stored in time, processes: {name}",
                f">= {LEAST_SHARE}",
                float(str(figures["turns_a_second"])) / float(str(figures["wanted"])),
                LEAST_SHARE,
                f"{SECONDS:g} s",
            )
            for name, figures in rates.items()
        ),
    )


def main(arguments: Sequence[str]) -> int:
    """Measure, or be one of the processes. Returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.cluster_faults.writers", description="Measures writers.")
    parser.add_argument("--json", type=Path, help="Write the figures into this file.")
    parser.add_argument("--write", nargs=3, metavar=("URL", "SERVER", "SECONDS"), help=argparse.SUPPRESS)
    chosen = parser.parse_args(arguments)
    if chosen.write is not None:
        url, server, seconds = chosen.write
        asyncio.run(write(url, int(server), float(seconds)))
        return 0
    measured = asyncio.run(report())
    if chosen.json is not None:
        chosen.json.write_text(measured.as_json(), "utf-8")
    return print_report(measured, emit)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
