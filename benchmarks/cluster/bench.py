"""`roomtone bench cluster`: how much longer a call to the recogniser service takes than one in process.

Both share this one machine, and nothing crosses a cable, which would add its own delay.
"""

from __future__ import annotations

import asyncio
import tempfile
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.child_process import child_process, python_module
from benchmarks.cluster.ray_nodes import check_own_network, in_own_network
from benchmarks.figures import number_at
from benchmarks.measuring import Measuring
from benchmarks.recordings import load_recordings
from benchmarks.report import Target, at_most
from config.load import load

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from benchmarks.progress import Progress
    from benchmarks.report import BenchmarkReport, Json

# Ray's first start may take minutes on a busy machine.
_OPEN_TIMEOUT_S = 600.0
_MORE_MS = 10.0
# Recordings that are recognised in turn. Each is kept in memory by both sides.
_RECORDINGS = 12


@dataclass(frozen=True, slots=True)
class ClusterBenchOptions:
    """The options of one run. `speech`: a folder of real recordings with a manifest.json; None: the sound of the
    bundled scenarios. `calls`: pairs of recognitions, one by the service and one in process.
    """

    speech: Path | None = None
    calls: int = 100


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
