"""`roomtone bench cluster`: what the recogniser pool costs each call, what more recognisers bring, what rooms in
processes take, and how long a machine takes to leave.

Ray listens on every address of a machine, so the pool runs in a network of its own. All its recognisers share this one
machine: what more of them bring is bounded by its cores, and nothing crosses a cable.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.child_process import child_process, python_module
from benchmarks.cluster.rooms import measure_rooms
from benchmarks.errors import BenchmarkError
from benchmarks.figures import number_at
from benchmarks.measuring import Measuring
from benchmarks.reply.recordings import load_recordings
from benchmarks.report import Target, at_most
from config.load import load

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from benchmarks.child_process import ChildProcess
    from benchmarks.cluster.options import ClusterBenchOptions
    from benchmarks.progress import Progress
    from benchmarks.report import BenchmarkReport, Json

# A new network has nothing but loopback, which is down. The process that ends the block ends everything in it.
_OWN_NETWORK = ("unshare", "--net", "--pid", "--fork", "--kill-child", "--mount-proc")
_UP = 'ip link set lo up && exec "$@"'
_NO_NETWORK = (
    "The benchmark of the pool needs a network of its own, because Ray listens on every address: run it on Linux, as "
    "root, with `unshare` and `ip` installed."
)
_NO_DATABASE = (
    "Rooms in processes were not measured: they need PostgreSQL. Set ROOMTONE_DATABASE_URL to one whose user may make "
    "a schema; everything is in a schema of its own, which is dropped at the end."
)
# A pool of three loads three models; Ray's first start may take minutes on a busy machine.
_OPEN_TIMEOUT_S = 600.0
_MORE_MS = 10.0
# Recordings that are recognised in turn. Each is kept in memory by both sides.
_RECORDINGS = 12


async def run(
    options: ClusterBenchOptions, progress: Progress, *, on_part: Callable[[BenchmarkReport], None] | None = None
) -> BenchmarkReport:
    """Measure the pool. `on_part` gets the unfinished report after each part. Raises `BenchmarkError`."""
    measuring = _Measuring(progress=progress, on_part=on_part)
    measuring.remark_if_busy()
    await _check_own_network()
    recordings = await asyncio.to_thread(load_recordings, options.speech)
    clips = [str(recording.path.absolute()) for recording in recordings.some(_RECORDINGS)]
    async with AsyncExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="roomtone-pool-"))
        command = (*_OWN_NETWORK, "sh", "-c", _UP, "sh", *python_module("benchmarks.cluster.pool_process"))
        child = await stack.enter_async_context(child_process("the pool", command))
        progress.step("starting a cluster", total=1)
        measuring.ours["cluster"] = await child.ask(
            "open", folder=folder, model=str(load().asr.model_dir.absolute()), timeout_s=_OPEN_TIMEOUT_S
        )
        measuring.part_done()
        await measuring.calls(child, clips, options.calls)
        for recognisers in options.recognisers:
            await measuring.throughput(child, clips, recognisers, options)
    for rooms, each in options.rooms:
        await measuring.rooms(clips, rooms, each, options)
    cores = measuring.machine.cores
    measuring.remark(
        f"All recognisers share the {cores} cores of one machine, so beyond {cores} threads of work more recognisers "
        "bring nothing; on machines of their own they would. The way is loopback: a cable adds its own delay."
    )
    return measuring.report()


@dataclass(slots=True, kw_only=True)
class _Measuring(Measuring):
    """One run and its results so far."""

    bench = "cluster"

    async def calls(self, child: ChildProcess, clips: list[str], calls: int) -> None:
        """Measure what the pool adds to a call."""
        self.progress.step("calls, by the pool and in process", total=1)
        self.ours["a call"] = await child.ask("pairs", clips=clips, calls=calls, timeout_s=_OPEN_TIMEOUT_S + 5 * calls)
        self.part_done()

    async def throughput(
        self, child: ChildProcess, clips: list[str], recognisers: int, options: ClusterBenchOptions
    ) -> None:
        """Measure how much a pool of this size recognises."""
        name = f"{recognisers} recogniser{'s' if recognisers > 1 else ''}"
        self.progress.step(f"{options.speakers} people and {name}", total=1)
        self.ours[name] = await child.ask(
            "throughput",
            clips=clips,
            recognisers=recognisers,
            speakers=options.speakers,
            seconds=options.seconds,
            timeout_s=_OPEN_TIMEOUT_S + options.seconds,
        )
        self.part_done()

    async def rooms(self, clips: list[str], rooms: int, each: int, options: ClusterBenchOptions) -> None:
        """Measure what so many rooms in processes take, and how long a machine with half of them takes to leave."""
        settings = load()
        database = settings.storage.database_url
        if database is None:
            self.remark(_NO_DATABASE)
            return
        self.progress.step(f"{rooms} rooms in processes, {each} in each", total=1)
        with tempfile.TemporaryDirectory(prefix="roomtone-rooms-") as folder:
            self.ours[f"{rooms} rooms, {each} a process"] = dict(
                await measure_rooms(
                    database.get_secret_value(),
                    Path(folder),
                    settings.models.directory.absolute(),
                    clips,
                    rooms=rooms,
                    each=each,
                    seconds=options.room_seconds,
                )
            )
        self.part_done()

    def targets(self) -> tuple[Target, ...]:
        return cluster_targets(self.ours)


def cluster_targets(ours: Mapping[str, Json]) -> tuple[Target, ...]:
    """Return the targets with their values in `ours`."""
    pairs = number_at(ours, "a call", "pairs")
    return (
        at_most(
            "a call to the pool takes longer than one in process, P50 ms",
            f"<= {_MORE_MS:g} ms",
            number_at(ours, "a call", "more_ms", "p50"),
            _MORE_MS,
            f"{pairs:.0f} pairs" if pairs else "",
        ),
    )


async def _check_own_network() -> None:
    """Raise `BenchmarkError` if this process may not make a network of its own."""
    if shutil.which("unshare") is None or shutil.which("ip") is None:
        raise BenchmarkError(_NO_NETWORK)
    trial = await asyncio.create_subprocess_exec(
        *_OWN_NETWORK, "true", stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL
    )
    if await trial.wait():
        raise BenchmarkError(_NO_NETWORK)
