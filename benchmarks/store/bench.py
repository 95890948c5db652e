"""Measures whether writes of different servers wait for each other: 1, 4 and 16 processes, each for its own server."""

from __future__ import annotations

import asyncio
import json
import secrets
import sys
from asyncio.subprocess import PIPE, Process
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING
from urllib.parse import quote

import psycopg
from psycopg import sql

from benchmarks.errors import BenchmarkError
from benchmarks.machine import busy_sentence, describe_machine
from benchmarks.report import BenchmarkReport, at_least
from benchmarks.stats import percentile

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

    from benchmarks.progress import Progress
    from benchmarks.report import Json, Target

PROCESSES = (1, 4, 16)
# Until a process has connected, on a busy machine.
_READY_S = 120.0


@dataclass(frozen=True, slots=True)
class StoreBenchOptions:
    """What to measure. `database`: the URL of a PostgreSQL database, in which a schema is made and dropped."""

    database: str | None = None
    seconds: float = 10.0


async def run(
    options: StoreBenchOptions,
    progress: Progress,
    *,
    on_part: Callable[[BenchmarkReport], None] | None = None,
) -> BenchmarkReport:
    """Run the benchmark. Raises `BenchmarkError` without a database, and psycopg's errors."""
    if options.database is None:
        raise BenchmarkError("Name a PostgreSQL database: ROOMTONE_DATABASE_URL, or --database URL.")
    machine = describe_machine()
    ours: dict[str, Json] = {}
    progress.step("storing turns", total=len(PROCESSES))
    async with _own_schema(options.database) as url:
        for count in PROCESSES:
            ours[f"{count} processes"] = await _measured(url, count, options.seconds)
            progress.advance()
    busy = busy_sentence(machine.load_1m, machine.cores)
    report = BenchmarkReport("store", machine, ours, {}, store_targets(ours), () if busy is None else (busy,))
    if on_part is not None:
        on_part(report)
    return report


def store_targets(ours: Mapping[str, Json]) -> tuple[Target, ...]:
    """Return whether more processes store more."""
    rates = [each["turns_a_second"] for each in ours.values() if isinstance(each, dict)]
    grown = min((_ratio(more, fewer) for fewer, more in pairwise(rates)), default=None)
    return (at_least("turns a second of 4 times as many processes, beside fewer", "more", grown, 1.0),)


def _ratio(more: Json, fewer: Json) -> float:
    assert isinstance(more, float)
    assert isinstance(fewer, float)
    return more / fewer


async def _measured(url: str, count: int, seconds: float) -> dict[str, Json]:
    """Return what so many processes stored at the same time."""
    async with AsyncExitStack() as stack:
        running = [await _start(stack, url, 100 * count + number, seconds) for number in range(count)]
        for each in running:
            async with asyncio.timeout(_READY_S):
                assert each.stdout is not None
                await each.stdout.readline()
        told = await asyncio.gather(*(each.communicate(b"\n") for each in running))
    took_s = sorted(took for out, _ in told for took in json.loads(out))
    return {
        "processes": count,
        "turns": len(took_s),
        "turns_a_second": round(len(took_s) / seconds, 1),
        "turn_ms": {f"p{share}": round(1000 * percentile(took_s, share / 100), 1) for share in (50, 95)},
    }


async def _start(stack: AsyncExitStack, url: str, server: int, seconds: float) -> Process:
    """Start a process that writes for a server, and end it with the stack."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "benchmarks.store.writer", url, str(server), str(seconds), stdin=PIPE, stdout=PIPE
    )
    stack.push_async_callback(_end, process)
    return process


async def _end(process: Process) -> None:
    if process.returncode is None:
        process.kill()
        await process.wait()


@asynccontextmanager
async def _own_schema(database: str) -> AsyncIterator[str]:
    """Yield the URL of a new schema, which is dropped afterwards."""
    name = f"roomtone_bench_{secrets.token_hex(4)}"
    await asyncio.to_thread(_execute, database, sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(name)))
    try:
        yield f"{database}{'&' if '?' in database else '?'}options={quote(f'-c search_path={name}', safe='')}"
    finally:
        await asyncio.to_thread(_execute, database, sql.SQL("DROP SCHEMA {} CASCADE").format(sql.Identifier(name)))


def _execute(database: str, statement: sql.Composed) -> None:
    with psycopg.connect(database, autocommit=True, connect_timeout=10) as connection:
        connection.execute(statement)
