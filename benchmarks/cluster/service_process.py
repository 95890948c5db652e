"""Runs Ray with the recogniser service and asks it, in a network of its own.

`bench` tells it what to ask (`benchmarks.child_process`).
"""

from __future__ import annotations

import asyncio
import itertools
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.child_process import answer_requests
from benchmarks.cluster.processes import ProcessUse, running, use_of
from benchmarks.cluster.ray_nodes import RayNodes
from benchmarks.figures import percentile
from bot.cluster.deployment import PORT
from bot.cluster.recogniser_service import APP
from rehearsal.people.clip import read_sound
from voice.asr.port import Recogniser, RecognitionRequest
from voice.asr.remote import RemoteRecogniser
from voice.asr.scheduler import QueuedRecogniser
from voice.asr.settings import AsrSettings
from voice.asr.whisper import engine_on_best_device
from voice.audio import DISCORD_RATE_HZ, LISTEN_RATE_HZ, Pcm, duration_s
from voice.endpoint import Endpoint
from voice.speaking.resample import resample

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from contextlib import AsyncExitStack

    from benchmarks.report import Json

# A bot's own limit would hide how long a service takes that has too much to do.
_CALL_TIMEOUT_S = 60.0
# Of which each recogniser reserves a tenth: they share one machine, whatever its size.
_CPUS, _EACH = 4, "0.1"
_REPLICA, _RAY = f"ServeReplica:{APP}", "ray"


class ServiceProcess:
    """The state of the process. `stack` closes what it opens. What it is asked is in the public methods."""

    def __init__(self, stack: AsyncExitStack) -> None:
        self._stack = stack
        self._model = ""
        self._nodes: RayNodes | None = None
        # By name: the service, and the same model in this process.
        self._recognisers: dict[str, Recogniser] = {}

    async def open(self, folder: str, model: str) -> Mapping[str, object]:
        """Start Ray with one recogniser, and return what the start took. `model`: a folder beside the other models."""
        at = Path(model)
        self._model = at.name
        begun = time.monotonic()
        nodes = RayNodes(Path(folder), (_CPUS,), {"ROOMTONE_MODELS__DIRECTORY": str(at.parent)})
        self._nodes = await self._stack.enter_async_context(nodes)
        head_s = time.monotonic() - begun
        await self._keep(1)
        endpoint, settings = Endpoint(f"http://127.0.0.1:{PORT}/v1", "whisper-1", "", _CALL_TIMEOUT_S), AsrSettings()
        self._recognisers = {
            "service": await self._stack.enter_async_context(RemoteRecogniser(endpoint, has_fallback=True)),
            "in_process": await self._stack.enter_async_context(QueuedRecogniser(engine_on_best_device(at, settings))),
        }
        ready_s = time.monotonic() - begun
        recogniser_mb, ray_mb = (await _use(_REPLICA)).memory_mb, (await _use(_RAY)).memory_mb
        return {
            "head_s": round(head_s, 1),
            "ready_s": round(ready_s, 1),
            "memory_mb_a_recogniser": round(recogniser_mb),
            "memory_mb_of_the_head": round(ray_mb - recogniser_mb),
        }

    async def pairs(self, clips: Sequence[str], calls: int) -> Mapping[str, object]:
        """Recognise each sound by the service and in process, in turns, one at a time. Returns how much longer the
        service takes.
        """
        sounds = await _sounds(clips)
        took: dict[str, list[float]] = {name: [] for name in self._recognisers}
        for sound in sounds:  # both have seen each length before anything counts
            for recogniser in self._recognisers.values():
                await _taken_s(recogniser, sound)
        for number, sound in zip(range(calls), itertools.cycle(sounds), strict=False):
            for name in took if number % 2 else reversed(took):
                took[name].append(await _taken_s(self._recognisers[name], sound))
        more = [far - near for far, near in zip(took["service"], took["in_process"], strict=True)]
        return {"pairs": calls, "more_ms": milliseconds(more)} | {
            f"{name}_ms": milliseconds(times_s) for name, times_s in took.items()
        }

    async def throughput(
        self, clips: Sequence[str], *, recognisers: int, at_once: int, seconds: float
    ) -> Mapping[str, object]:
        """Keep so many requests under way, each followed by the next as soon as its text is there. Returns how much so
        many recognisers recognise.
        """
        await self._keep(recognisers)
        sounds, numbers = await _sounds(clips), itertools.count()
        took: list[float] = []
        heard_s: list[float] = []
        before, begun = await _use(_RAY), time.monotonic()

        async def speak() -> None:
            while time.monotonic() - begun < seconds:
                sound = sounds[next(numbers) % len(sounds)]
                took.append(await _taken_s(self._recognisers["service"], sound))
                heard_s.append(duration_s(sound))

        await asyncio.gather(*(speak() for _ in range(at_once)))
        passed_s, after = time.monotonic() - begun, await _use(_RAY)
        return {
            "utterances": len(took),
            "speech_s_a_s": round(sum(heard_s) / passed_s, 2),
            "utterance_ms": milliseconds(took),
            "cpu_s_a_speech_s": round((after.cpu_s - before.cpu_s) / sum(heard_s), 4),
        }

    async def _keep(self, recognisers: int) -> None:
        assert self._nodes is not None, "open"
        await self._nodes.roomtone(
            *("cluster", "up", "--recognisers", str(recognisers), "--cpus", _EACH, "--model", self._model)
        )


def milliseconds(times_s: Sequence[float]) -> dict[str, Json]:
    """Return the median and the 95th percentile of `times_s`, in milliseconds."""
    return {name: round(1000 * percentile(times_s, share), 1) for name, share in (("p50", 0.5), ("p95", 0.95))}


async def _use(named: str) -> ProcessUse:
    """Return what all processes take whose command line has `named`."""
    return await asyncio.to_thread(use_of, running(), named)


async def _taken_s(recogniser: Recogniser, sound: Pcm) -> float:
    begun = time.perf_counter()
    await recogniser.recognise(RecognitionRequest(sound, language="en"))
    return time.perf_counter() - begun


async def _sounds(clips: Sequence[str]) -> list[Pcm]:
    return await asyncio.to_thread(
        lambda: [resample(read_sound(Path(clip)), DISCORD_RATE_HZ, LISTEN_RATE_HZ) for clip in clips]
    )


if __name__ == "__main__":
    # As in every recogniser (`bot.cluster.ray_access`): numpy's threads would spin beside the model's.
    os.environ["OMP_NUM_THREADS"] = "1"
    answer_requests(ServiceProcess)
