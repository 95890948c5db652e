"""`roomtone bench cluster`: what the recogniser service costs each call, what more recognisers bring, and what a bot
with some rooms takes.

All recognisers share this one machine: what more of them bring is bounded by its cores, and nothing crosses a cable.
"""

from __future__ import annotations

import asyncio
import tempfile
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.child_process import child_process, python_module
from benchmarks.cluster.bot_process import measure_bot
from benchmarks.cluster.ray_nodes import check_own_network, in_own_network
from benchmarks.figures import number_at
from benchmarks.measuring import Measuring
from benchmarks.reply.recordings import load_recordings
from benchmarks.report import Target, at_most
from config.load import load

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from benchmarks.cluster.options import ClusterBenchOptions
    from benchmarks.progress import Progress
    from benchmarks.report import BenchmarkReport, Json

# Ray's first start may take minutes on a busy machine.
_OPEN_TIMEOUT_S = 600.0
_MORE_MS = 10.0
# Recordings that are recognised in turn. Each is kept in memory by both sides.
_RECORDINGS = 12


async def run(
    options: ClusterBenchOptions, progress: Progress, *, on_part: Callable[[BenchmarkReport], None] | None = None
) -> BenchmarkReport:
    """Measure all. `on_part` gets the unfinished report after each part. Raises `BenchmarkError`."""
    measuring = _Measuring(progress=progress, on_part=on_part)
    measuring.remark_if_busy()
    await check_own_network()
    recordings = await asyncio.to_thread(load_recordings, options.speech)
    clips = [str(recording.path.absolute()) for recording in recordings.some(_RECORDINGS)]
    settings = load()
    async with AsyncExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="roomtone-cluster-"))
        command = in_own_network(python_module("benchmarks.cluster.service_process"))
        child = await stack.enter_async_context(child_process("the service", tuple(command)))
        progress.step("starting Ray", total=1)
        model = str(settings.asr.model_dir.absolute())
        opened = await child.ask("open", folder=folder, model=model, timeout_s=_OPEN_TIMEOUT_S)
        measuring.part_measured("cluster", opened)
        progress.step("calls, by the service and in process", total=1)
        asked = {"clips": clips, "calls": options.calls}
        measuring.part_measured("a call", await child.ask("pairs", **asked, timeout_s=_OPEN_TIMEOUT_S))
        for recognisers in options.recognisers:
            name = f"{recognisers} recogniser{'s' if recognisers > 1 else ''}"
            progress.step(f"{options.speakers} people and {name}", total=1)
            spoken = {"recognisers": recognisers, "speakers": options.speakers, "seconds": options.seconds}
            timeout_s = _OPEN_TIMEOUT_S + options.seconds
            measuring.part_measured(name, await child.ask("throughput", clips=clips, **spoken, timeout_s=timeout_s))
    for rooms in options.rooms:
        progress.step(f"a bot with {rooms} rooms", total=1)
        with tempfile.TemporaryDirectory(prefix="roomtone-bot-") as place:
            models = settings.models.directory.absolute()
            found = await measure_bot(Path(place), models, clips, rooms=rooms, seconds=options.room_seconds)
            measuring.part_measured(f"a bot with {rooms} rooms", dict(found))
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

    def targets(self) -> tuple[Target, ...]:
        return cluster_targets(self.ours)


def cluster_targets(ours: Mapping[str, Json]) -> tuple[Target, ...]:
    """Return the targets with their values in `ours`."""
    pairs = number_at(ours, "a call", "pairs")
    return (
        at_most(
            "a call to the service takes longer than one in process, P50 ms",
            f"<= {_MORE_MS:g} ms",
            number_at(ours, "a call", "more_ms", "p50"),
            _MORE_MS,
            f"{pairs:.0f} pairs" if pairs else "",
        ),
    )
