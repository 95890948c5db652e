"""`roomtone bench cluster`: how much longer a call to the recogniser service takes than one in process, how much it
recognises by the number of requests at once, and what a bot with some rooms takes.

All share this one machine: what more recognisers bring is bounded by its cores, and nothing crosses a cable.
"""

from __future__ import annotations

import asyncio
import math
import tempfile
from contextlib import AsyncExitStack
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

from benchmarks.child_process import child_process
from benchmarks.cluster.bot_process import measure_bot
from benchmarks.cluster.ray_nodes import check_own_network, in_own_network
from benchmarks.figures import number_at
from benchmarks.measuring import Measuring, Progress, measuring
from benchmarks.recordings import load_recordings
from benchmarks.report import BenchmarkReport, Json, Target, at_most
from bot.models.directory import whisper_folder
from config.load import load

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path


# Ray's first start may take minutes on a busy machine.
_TIMEOUT_S = 600.0
_MORE_MS = 10.0
# Recordings that are recognised in turn. Each is kept in memory by both sides.
_RECORDINGS = 12
ROOMS = (100, 1_000, 10_000)
# Of each second in a room, so much is speech of somebody, and each second of it is recognised this often: when it has
# ended, and in part before, in its pauses.
SPEECH_SHARE, HEARD_TIMES = 0.5, 1.5
# Machines that worked all the time would let everybody wait.
BUSY_SHARE = 0.5
ASSUMED = (
    f"Sizes are calculated: somebody speaks {SPEECH_SHARE:.0%} of the time, each second is recognised {HEARD_TIMES:g} "
    f"times, cores work {BUSY_SHARE:.0%} of the time, and a recogniser takes two of them."
)


@dataclass(frozen=True, slots=True)
class ClusterBenchOptions:
    """The options of one run. `speech`: a folder of real recordings with a manifest.json; None: the sound of the
    bundled scenarios. `calls`: pairs of recognitions, one by the service and one in process. `recognisers`: the sizes
    of the service. `at_once`: the numbers of requests at once to each. `rooms`: how many a bot has. `seconds`: how long
    each of these goes on.
    """

    speech: Path | None = None
    calls: int = 100
    recognisers: tuple[int, ...] = (1, 2)
    at_once: tuple[int, ...] = (1, 2, 6)
    rooms: tuple[int, ...] = (1, 6)
    seconds: float = 30.0

    @classmethod
    def quick(cls, speech: Path | None = None) -> ClusterBenchOptions:
        """Return a short run that still measures everything."""
        return cls(speech, calls=5, recognisers=(1,), at_once=(1, 3), rooms=(1, 2), seconds=5.0)


async def run(
    options: ClusterBenchOptions, progress: Progress, *, on_part: Callable[[BenchmarkReport], None] = lambda _: None
) -> BenchmarkReport:
    """Measure all. `on_part` gets the unfinished report after each part. Raises `BenchmarkError`."""
    await check_own_network()
    recordings = await asyncio.to_thread(load_recordings, options.speech)
    clips = [str(recording.path.absolute()) for recording in recordings.some(_RECORDINGS)]
    settings = load()
    with measuring("cluster", cluster_targets, progress, on_part) as found:
        model = whisper_folder(settings.models, settings.asr).absolute()
        await _service(found, options, clips, str(model))
        for rooms in options.rooms:
            name = f"a bot with {rooms} room{'s' if rooms > 1 else ''}"
            progress.step(name, total=1)
            models = settings.models.directory.absolute()
            taken = await measure_bot(models, clips, rooms=rooms, seconds=options.seconds)
            found.part_measured(name, taken)
        found.ours |= sizes(found.ours)
        found.remark(f"All share the {found.machine.cores} cores of one machine, and no cable. {ASSUMED}")
    return found.report()


async def _service(found: Measuring, options: ClusterBenchOptions, clips: Sequence[str], model: str) -> None:
    """Start the service, and ask it for recognitions: one at a time, and several at once."""
    asked: list[tuple[str, str, dict[str, object]]] = [("a call", "pairs", {"calls": options.calls})]
    for recognisers, at_once in product(options.recognisers, options.at_once):
        name = f"{recognisers} recogniser{'s' if recognisers > 1 else ''}, {at_once} at once"
        wanted = {"recognisers": recognisers, "at_once": at_once, "seconds": options.seconds}
        asked.append((name, "throughput", {**wanted}))
    async with AsyncExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="roomtone-cluster-"))
        module = "benchmarks.cluster.service_process"
        child = await stack.enter_async_context(child_process("the service", module, inside=in_own_network()))
        found.progress.step("starting Ray", total=1)
        opened = await child.ask("open", folder=folder, model=model, timeout_s=_TIMEOUT_S)
        found.part_measured("cluster", opened)
        for name, op, request in asked:
            found.progress.step(name, total=1)
            figures = await child.ask(op, clips=clips, timeout_s=_TIMEOUT_S + options.seconds, **request)
            found.part_measured(name, figures)


def sizes(ours: Mapping[str, Json]) -> dict[str, Json]:
    """Return bots, cores of recognisers and memory for some numbers of rooms: the figures of one machine, multiplied.
    Nothing without the figures for it. Who sizes machines by the best case has too few.
    """
    entries = [name for name, each in ours.items() if isinstance(each, dict)]
    heard = [each for name in entries if (each := number_at(ours, name, "cpu_s_a_speech_s")) and "at once" in name]
    bots = sorted((rooms, name) for name in entries if (rooms := number_at(ours, name, "rooms")))
    recogniser_mb, head_mb = (
        number_at(ours, "cluster", f"memory_mb_{each}") for each in ("a_recogniser", "of_the_head")
    )
    if not heard or len(bots) < 2 or recogniser_mb is None or head_mb is None:
        return {}
    (few, first), *_, (many, last) = bots
    few_mb, many_mb = (number_at(ours, name, "memory_mb") or 0.0 for name in (first, last))
    room_mb = max(0.0, (many_mb - few_mb) / (many - few))
    silent_s, speech_s = (number_at(ours, last, f"cpu_s_a_{each}_s") or 0.0 for each in ("silent", "speech"))
    found: dict[str, Json] = {}
    for rooms in ROOMS:
        processes = math.ceil(rooms * (silent_s + SPEECH_SHARE * speech_s) / BUSY_SHARE)
        cores = math.ceil(rooms * SPEECH_SHARE * HEARD_TIMES * max(heard) / BUSY_SHARE)
        memory_mb = head_mb + math.ceil(cores / 2) * recogniser_mb
        memory_mb += processes * (few_mb - few * room_mb) + rooms * room_mb
        found[f"{rooms:,} rooms"] = {
            "bots": processes,
            "cores_of_recognisers": cores,
            "memory_gb": round(memory_mb / 1_000, 1),
        }
    return found


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
