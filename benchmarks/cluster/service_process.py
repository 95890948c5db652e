"""Runs Ray with the recogniser service and asks it, in a network of its own.

{"op": "open", "folder": "...", "model": "..."}                                  -> what the start took
{"op": "pairs", "clips": ["..."], "calls": 100}                                  -> how much longer the service takes
{"op": "throughput", "clips": ["..."], "recognisers": 2, "at_once": 6, "seconds": 30} -> how much it recognises
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import os
import time
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import structlog

from benchmarks.child_process import keep_stdout_for_answers, serve
from benchmarks.cluster.processes import cpu_s, memory_mb, running, use_of
from benchmarks.cluster.ray_nodes import RayNodes
from benchmarks.stats import percentile
from bot.cluster.deployment import PORT
from bot.cluster.recogniser_service import APP
from rehearsal.people.clip import read_sound
from voice.asr.remote import RemoteRecogniser
from voice.asr.scheduler import QueuedRecogniser
from voice.asr.settings import AsrSettings
from voice.asr.whisper import WhisperEngine
from voice.audio import DISCORD_RATE_HZ, LISTEN_RATE_HZ, duration_s
from voice.endpoint import Endpoint
from voice.speaking.resample import resample

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from benchmarks.report import Json
    from voice.asr.port import Recogniser
    from voice.audio import Pcm

# A bot's own limit would hide how long a service takes that has too much to do.
_CALL_TIMEOUT_S = 60.0
# Of which each recogniser reserves a tenth: they share one machine, whatever its size.
_CPUS, _EACH = 4, "0.1"
_REPLICA, _RAY = f"ServeReplica:{APP}", "ray"


class ServiceProcess:
    """The state of the process. `stack` closes what it opens."""

    def __init__(self, stack: AsyncExitStack) -> None:
        self._stack = stack
        self._model = ""
        self._nodes: RayNodes | None = None
        self._own: Recogniser | None = None
        self._service: Recogniser | None = None

    async def answer(self, request: Mapping[str, Any]) -> Mapping[str, object]:
        """Carry out one request."""
        match request["op"]:
            case "open":
                return await self._open(Path(request["folder"]), Path(request["model"]))
            case "pairs":
                return await self._pairs(await _sounds(request["clips"]), request["calls"])
            case "throughput":
                await self._keep(request["recognisers"])
                sounds = await _sounds(request["clips"])
                return await self._throughput(sounds, at_once=request["at_once"], seconds=request["seconds"])
            case other:
                raise ValueError(f"unknown request {other}")

    async def _open(self, folder: Path, model: Path) -> Mapping[str, object]:
        environment = {"ROOMTONE_MODELS__DIRECTORY": str(model.parent)}
        self._model = model.name
        begun = time.monotonic()
        self._nodes = await self._stack.enter_async_context(RayNodes(folder, (_CPUS,), environment))
        head_s = time.monotonic() - begun
        await self._keep(1)
        endpoint = Endpoint(f"http://127.0.0.1:{PORT}/v1", "whisper-1", "", _CALL_TIMEOUT_S)
        self._service = await self._stack.enter_async_context(RemoteRecogniser(endpoint, has_fallback=True))
        settings = AsrSettings()
        self._own = await self._stack.enter_async_context(QueuedRecogniser(lambda: WhisperEngine(model, settings)))
        ready_s = time.monotonic() - begun
        taken = await asyncio.to_thread(lambda: use_of(running()))
        recogniser_mb = memory_mb(taken, _REPLICA)
        return {
            "head_s": round(head_s, 1),
            "ready_s": round(ready_s, 1),
            "memory_mb_a_recogniser": round(recogniser_mb),
            "memory_mb_of_the_head": round(memory_mb(taken, _RAY) - recogniser_mb),
        }

    async def _keep(self, recognisers: int) -> None:
        assert self._nodes is not None, "open"
        await self._nodes.roomtone(
            *("cluster", "up", "--recognisers", str(recognisers), "--cpus", _EACH, "--model", self._model)
        )

    async def _pairs(self, sounds: Sequence[Pcm], calls: int) -> Mapping[str, object]:
        """Recognise each sound by the service and in process, in turns, one at a time."""
        assert self._service is not None
        assert self._own is not None
        asked: dict[str, list[float]] = {"service": [], "own": []}
        both = (("service", self._service), ("own", self._own))
        for sound in sounds:  # both have seen each length before anything counts
            for _, recogniser in both:
                await _taken_s(recogniser, sound)
        for number, sound in zip(range(calls), itertools.cycle(sounds), strict=False):
            for name, recogniser in both if number % 2 else both[::-1]:
                asked[name].append(await _taken_s(recogniser, sound))
        more = [far - near for far, near in zip(asked["service"], asked["own"], strict=True)]
        return {
            "pairs": calls,
            "more_ms": milliseconds(more),
            "service_ms": milliseconds(asked["service"]),
            "in_process_ms": milliseconds(asked["own"]),
        }

    async def _throughput(self, sounds: Sequence[Pcm], *, at_once: int, seconds: float) -> Mapping[str, object]:
        """Keep so many requests under way, each followed by the next as soon as its text is there."""
        assert self._service is not None
        service, took, heard_s, numbers = self._service, [], [], itertools.count()
        before, begun = await asyncio.to_thread(lambda: use_of(running())), time.monotonic()

        async def speak() -> None:
            while time.monotonic() - begun < seconds:
                sound = sounds[next(numbers) % len(sounds)]
                took.append(await _taken_s(service, sound))
                heard_s.append(duration_s(sound))

        await asyncio.gather(*(speak() for _ in range(at_once)))
        passed_s, after = time.monotonic() - begun, await asyncio.to_thread(lambda: use_of(running()))
        return {
            "utterances": len(took),
            "speech_s_a_s": round(sum(heard_s) / passed_s, 2),
            "utterance_ms": milliseconds(took),
            "cpu_s_a_speech_s": round((cpu_s(after, _RAY) - cpu_s(before, _RAY)) / sum(heard_s), 4),
        }


def milliseconds(times_s: Sequence[float]) -> dict[str, Json]:
    """Return the median and the 95th percentile of `times_s`, in milliseconds."""
    return {name: round(1000 * percentile(times_s, share), 1) for name, share in (("p50", 0.5), ("p95", 0.95))}


async def _taken_s(recogniser: Recogniser, sound: Pcm) -> float:
    begun = time.perf_counter()
    await recogniser.recognise(sound, language="en")
    return time.perf_counter() - begun


async def _sounds(clips: Sequence[str]) -> list[Pcm]:
    return await asyncio.to_thread(
        lambda: [resample(read_sound(Path(clip)), DISCORD_RATE_HZ, LISTEN_RATE_HZ) for clip in clips]
    )


async def _run(answers: int) -> None:
    async with AsyncExitStack() as stack:
        await serve(answers, ServiceProcess(stack).answer)


if __name__ == "__main__":
    channel = keep_stdout_for_answers()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    # As in every recogniser (`bot.cluster.ray_access`): numpy's threads would spin beside the model's.
    os.environ["OMP_NUM_THREADS"] = "1"
    asyncio.run(_run(channel))
