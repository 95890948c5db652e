"""Runs a pool and asks it, in a network of its own (`python -m benchmarks.cluster.pool_process`).

{"op": "open", "folder": "...", "model": "..."}                                      -> what the cluster takes
{"op": "pairs", "clips": ["..."], "calls": 100}                                      -> how much longer the pool takes
{"op": "throughput", "clips": ["..."], "recognisers": 2, "speakers": 6, "seconds": 30} -> how much it recognises
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import os
import signal
import sys
import time
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aiohttp
import structlog

from benchmarks.child_process import keep_stdout_for_answers, serve
from benchmarks.cluster.figures import milliseconds
from benchmarks.cluster.processes import cpu_s, memory_mb, running
from bot.cluster.address import pool_endpoint
from bot.cluster.state import APP
from rehearsal.people.clip import read_sound
from voice.asr.remote import RemoteRecogniser
from voice.asr.scheduler import QueuedRecogniser
from voice.asr.settings import AsrSettings
from voice.asr.whisper import WhisperEngine
from voice.audio import DISCORD_RATE_HZ, LISTEN_RATE_HZ, duration_s
from voice.speaking.resample import resample

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence

    from voice.asr.port import Recogniser
    from voice.audio import Pcm
    from voice.endpoint import Endpoint

_ROOMTONE = (sys.executable, "-m", "bot")
_RUNS = "Ctrl-C ends it."
# Three starts of Ray, and a model.
_UP_TIMEOUT_S = 500.0
_STOP_TIMEOUT_S = 60.0
# The pool's own limit is for a room; here it would hide how long a pool takes that has too much to do.
_CALL_TIMEOUT_S = 60.0
# A recogniser's part of a machine. The pools of the benchmark share one machine, whatever its size.
_CPUS = "0.1"
# What the command lines have of a recogniser, and of all that belongs to Ray.
_REPLICA = f"ServeReplica:{APP}"
_RAY = "ray"


class PoolProcess:
    """The state of the process. `stack` closes what it opens."""

    def __init__(self, stack: AsyncExitStack) -> None:
        self._stack = stack
        self._folder = Path()
        self._own: Recogniser | None = None
        self._pool: Recogniser | None = None
        self._endpoint: Endpoint | None = None

    async def answer(self, request: Mapping[str, Any]) -> Mapping[str, object]:
        """Carry out one request."""
        match request["op"]:
            case "open":
                return await self._open(Path(request["folder"]), request["model"])
            case "pairs":
                return await self._pairs(await _sounds(request["clips"]), request["calls"])
            case "throughput":
                await self._scale(request["recognisers"])
                return await self._throughput(
                    await _sounds(request["clips"]), speakers=request["speakers"], seconds=request["seconds"]
                )
            case other:
                raise ValueError(f"unknown request {other}")

    async def _open(self, folder: Path, model: str) -> Mapping[str, object]:
        self._folder = folder
        settings = AsrSettings(model_dir=Path(model), device="cpu")
        # The model that reads what was recognised is beside it, where it is installed.
        models = Path(model).parent
        config = f'[models]\ndirectory = "{models}"\n[asr]\nmodel = "{model}"\ndevice = "cpu"\n'
        await asyncio.to_thread((folder / "roomtone.toml").write_text, config, "utf-8")
        begun = time.monotonic()
        await self._stack.enter_async_context(_cluster(folder))
        ready_s = time.monotonic() - begun
        self._endpoint = replace(pool_endpoint("auto", folder / "data" / "cluster"), timeout_s=_CALL_TIMEOUT_S)
        pool = RemoteRecogniser(self._endpoint, is_own=True, has_fallback=True)
        self._pool = await self._stack.enter_async_context(pool)
        self._own = await self._stack.enter_async_context(QueuedRecogniser(lambda: WhisperEngine(settings)))
        processes = await asyncio.to_thread(running)
        recognisers = memory_mb(processes, _REPLICA)
        return {
            "ready_s": round(ready_s, 1),
            "memory_mb_a_recogniser": round(sum(recognisers) / len(recognisers)) if recognisers else None,
            "memory_mb_of_the_head": round(sum(memory_mb(processes, _RAY)) - sum(recognisers)),
        }

    async def _pairs(self, sounds: Sequence[Pcm], calls: int) -> Mapping[str, object]:
        """Recognise each sound by the pool and in process, in turns, one at a time; and ask for nothing as often."""
        assert self._pool is not None
        assert self._own is not None
        pooled: list[float] = []
        own: list[float] = []
        refused: list[float] = []
        for sound in sounds:  # both have seen each length before anything counts
            await _taken_s(self._pool, sound)
            await _taken_s(self._own, sound)
        async with aiohttp.ClientSession() as http:
            for number, sound in zip(range(calls), itertools.cycle(sounds), strict=False):
                first_pool = number % 2 == 0
                if first_pool:
                    pooled.append(await _taken_s(self._pool, sound))
                own.append(await _taken_s(self._own, sound))
                if not first_pool:
                    pooled.append(await _taken_s(self._pool, sound))
                refused.append(await self._refusal_s(http))
        return {
            "pairs": calls,
            "more_ms": milliseconds([far - near for far, near in zip(pooled, own, strict=True)]),
            "pool_ms": milliseconds(pooled),
            "in_process_ms": milliseconds(own),
            "way_alone_ms": milliseconds(refused),
        }

    async def _refusal_s(self, http: aiohttp.ClientSession) -> float:
        """Return how long a request takes that is refused where it is read: the way to Ray Serve and back."""
        assert self._endpoint is not None
        begun = time.perf_counter()
        async with http.get(
            f"{self._endpoint.base_url}/audio/transcriptions",
            headers={"Authorization": f"Bearer {self._endpoint.api_key}"},
        ) as answer:
            await answer.read()
        return time.perf_counter() - begun

    async def _scale(self, recognisers: int) -> None:
        scaling = await asyncio.create_subprocess_exec(
            *_ROOMTONE, "cluster", "scale", str(recognisers), "--cpus", _CPUS, cwd=self._folder, stdout=2
        )
        if await scaling.wait():
            raise RuntimeError(f"the pool could not be made {recognisers} recognisers large")

    async def _throughput(self, sounds: Sequence[Pcm], *, speakers: int, seconds: float) -> Mapping[str, object]:
        """Let people speak at once, each the next sentence as soon as the text of the one before is there."""
        assert self._pool is not None
        pool, took, heard_s, numbers = self._pool, [], [], itertools.count()
        before, begun = await asyncio.to_thread(running), time.monotonic()

        async def speak(speaker_id: int) -> None:
            while time.monotonic() - begun < seconds:
                sound = sounds[next(numbers) % len(sounds)]
                took.append(await _taken_s(pool, sound, speaker_id))
                heard_s.append(duration_s(sound))

        async with asyncio.TaskGroup() as group:
            for speaker_id in range(speakers):
                group.create_task(speak(speaker_id), name=f"speaker-{speaker_id}")
        passed_s = time.monotonic() - begun
        after = await asyncio.to_thread(running)
        return {
            "utterances": len(took),
            "utterances_a_s": round(len(took) / passed_s, 2),
            "speech_s_a_s": round(sum(heard_s) / passed_s, 2),
            "utterance_ms": milliseconds(took),
            "recognisers_cpu_s_a_speech_s": round((cpu_s(after, _REPLICA) - cpu_s(before, _REPLICA)) / sum(heard_s), 4),
            "whole_cluster_cpu_s_a_speech_s": round((cpu_s(after, _RAY) - cpu_s(before, _RAY)) / sum(heard_s), 4),
        }


@asynccontextmanager
async def _cluster(folder: Path) -> AsyncIterator[None]:
    """Run `roomtone cluster up` during the block, with one recogniser. Raises RuntimeError if it does not start."""
    output = folder / "up.txt"
    with output.open("wb") as file:
        up = await asyncio.create_subprocess_exec(
            *_ROOMTONE, "cluster", "up", "--cpus", _CPUS, cwd=folder, stdout=file, stderr=file
        )
    try:
        async with asyncio.timeout(_UP_TIMEOUT_S):
            while _RUNS not in (told := await asyncio.to_thread(output.read_text, "utf-8")):
                if up.returncode is not None:
                    raise RuntimeError(told.strip().splitlines()[-1])
                await asyncio.sleep(0.2)
        yield
    finally:
        if up.returncode is None:
            up.send_signal(signal.SIGTERM)
            async with asyncio.timeout(_STOP_TIMEOUT_S):
                await up.wait()


async def _taken_s(recogniser: Recogniser, sound: Pcm, speaker_id: int | None = None) -> float:
    begun = time.perf_counter()
    await recogniser.recognise(sound, language="en", speaker_id=speaker_id)
    return time.perf_counter() - begun


async def _sounds(clips: Sequence[str]) -> list[Pcm]:
    return await asyncio.to_thread(
        lambda: [resample(read_sound(Path(clip)), DISCORD_RATE_HZ, LISTEN_RATE_HZ) for clip in clips]
    )


async def _run(answers: int) -> None:
    async with AsyncExitStack() as stack:
        await serve(answers, PoolProcess(stack).answer)


if __name__ == "__main__":
    channel = keep_stdout_for_answers()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    # As in every recogniser (`bot.cluster.deployment`): numpy's threads would spin beside the model's.
    os.environ["OMP_NUM_THREADS"] = "1"
    asyncio.run(_run(channel))
