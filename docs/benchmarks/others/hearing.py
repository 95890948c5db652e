"""Measures hearing beside discord-ext-voice-recv and @discordjs/voice: three bots in one call of the local Discord.

After `uv pip install --no-deps discord-ext-voice-recv`, `python -m docs.benchmarks.others.hearing` prints JSON. In
each scene Ada says utterances of 50 packets. The pitch rises from packet to packet, so that what a bot hears tells
which packet it was. `right`: packets whose pitch is heard, in order, also if it comes from the copy in the next packet;
a sound that is invented repeats a pitch, and counts once. `heard`: pieces of 20 ms that are no silence. `cpu_s`: CPU
time of the bot's process for a second of Ada's sound.
The last scenes have no end-to-end encryption.
"""

from __future__ import annotations

import asyncio
import collections
import contextlib
import importlib
import json
import os
import sys
import tempfile
from bisect import bisect_left
from functools import partial
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import discord
import numpy as np
import structlog

import voice
from rehearsal.people.clip import Clip, VoicedBounds, opus_packets
from rehearsal.pytest_plugin import logged_in, open_discord
from tests.node.client import node_client
from tests.node.packages import HERE, installed_packages

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from rehearsal.discord import LocalDiscord
    from rehearsal.pytest_plugin import DiscordForTests

ADA, CHLOE, CHANNEL = 2001, 2003, 600
PACKETS, UTTERANCES = 50, 15
FIRST_HZ, STEP_HZ = 400.0, 60.0
_PIECE = 960
_LOUD = 500.0
# So long after the first packet something happens to the call.
_MIDST_S = 0.4


def rising() -> Clip:
    """Return an utterance. Packet `n` has the pitch `FIRST_HZ + n * STEP_HZ`."""
    at = np.arange(PACKETS * _PIECE) / 48_000
    turns = FIRST_HZ * at + STEP_HZ * at**2 / 0.04
    packets = opus_packets(np.asarray(8_000 * np.sin(2 * np.pi * turns), np.int16))[:PACKETS]
    return Clip("rising", packets, VoicedBounds(0, PACKETS - 1))


def numbers_of(pcm: np.ndarray[Any, Any]) -> list[int]:
    """Return the number of the packet that each piece of sound was, by its pitch. Silence has none."""
    pieces = pcm[: len(pcm) // _PIECE * _PIECE].reshape(-1, _PIECE).astype(float)
    loud = pieces[np.sqrt((pieces**2).mean(axis=1)) > _LOUD]
    pitch = np.abs(np.fft.rfft(loud * np.hanning(_PIECE), 8 * _PIECE)).argmax(axis=1) * 48_000 / (8 * _PIECE)
    found = np.round((pitch - FIRST_HZ) / STEP_HZ - 0.5).astype(int)
    return [int(each) for each in found.clip(0, PACKETS - 1)]


def in_order(numbers: list[int]) -> int:
    """Return how many packets were heard in the order in which they were sent: the longest common subsequence."""
    ends: list[int] = []
    for number in numbers:
        for sent in reversed(range(number, PACKETS * UTTERANCES, PACKETS)):
            place = bisect_left(ends, sent)
            ends[place : place + 1] = [sent]
    return len(ends)


# -- the bots of discord.py, each in a process of its own ------------------------------------------------------


async def _roomtone(channel: Any, file: Any) -> None:
    hearing = await channel.connect(cls=partial(voice.HearingClient, rate_hz=48_000), timeout=60)
    print("ready", flush=True)
    async for event in hearing.events():
        if isinstance(event, voice.SpeechFrames) and event.user_id == ADA:
            file.write(event.pcm.tobytes())


async def _voice_recv(channel: Any, file: Any) -> None:
    voice_recv: Any = importlib.import_module("discord.ext.voice_recv")
    client = await channel.connect(cls=voice_recv.VoiceRecvClient, timeout=60)
    print("ready", flush=True)
    errors: collections.Counter[str] = collections.Counter()

    def write(user: Any, data: Any) -> None:
        if user is not None and user.id == ADA:
            file.write(np.frombuffer(data.pcm, np.int16)[::2].tobytes())

    def ended(error: Exception | None) -> None:
        errors[repr(error)] += 1
        print(json.dumps(errors), flush=True)

    while True:
        # It ends at its first error, and is begun again.
        if client.is_connected() and not client.is_listening():
            client.listen(voice_recv.BasicSink(write), after=ended)
        await asyncio.sleep(0.02)


async def _child(name: str, bot_id: str, path: str, local: str) -> None:
    bot = discord.Client(intents=discord.Intents.default(), guild_ready_timeout=0.1)
    with Path(path).open("wb", buffering=0) as file:  # noqa: ASYNC230 - nothing else runs yet
        async with logged_in(bot, SimpleNamespace(**json.loads(local)), f"{bot_id}.test"):  # type: ignore[arg-type]
            await {"roomtone": _roomtone, "voice-recv": _voice_recv}[name](bot.get_channel(CHANNEL), file)


class _Bot:
    """A bot that listens. `told`: the last line that it has printed."""

    def __init__(self, pid: int, path: Path, width: int) -> None:
        self._pid, self._path, self._width = pid, path, width
        self.told = ""
        self._from = self._ticks = 0

    def begin(self) -> None:
        self._path.touch()
        self._from, self._ticks = self._path.stat().st_size, self._cpu_ticks()

    def result(self) -> dict[str, float]:
        numbers = numbers_of(np.frombuffer(self._path.read_bytes()[self._from :], "<i2")[:: self._width])
        seconds = (self._cpu_ticks() - self._ticks) / os.sysconf("SC_CLK_TCK")
        sound_s = UTTERANCES * PACKETS * 0.02
        return {"heard": len(numbers), "right": in_order(numbers), "cpu_s": round(seconds / sound_s, 4)}

    def _cpu_ticks(self) -> int:
        return sum(map(int, Path(f"/proc/{self._pid}/stat").read_text("utf-8").rpartition(")")[2].split()[11:13]))


@contextlib.asynccontextmanager
async def _bot(name: str, bot_id: int, local: LocalDiscord, folder: Path) -> AsyncIterator[_Bot]:
    path = folder / name
    known = {key: str(getattr(local, key)) for key in ("api_base", "gateway_url", "certificate_path")}
    arguments = ("-m", "docs.benchmarks.others.hearing", name, str(bot_id), str(path), json.dumps(known))
    log = (folder / f"{name}.log").open("wb")
    process = await asyncio.create_subprocess_exec(
        sys.executable, *arguments, stdout=asyncio.subprocess.PIPE, stderr=log
    )
    bot = _Bot(process.pid, path, 1)
    assert process.stdout is not None
    if await process.stdout.readline() != b"ready\n":
        sys.exit((folder / f"{name}.log").read_text("utf-8"))

    async def read() -> None:
        while line := await process.stdout.readline():  # type: ignore[union-attr]
            bot.told = line.decode().strip()

    reading = asyncio.create_task(read(), name=name)
    try:
        yield bot
    finally:
        process.kill()
        await process.wait()
        await reading
        log.close()


# -- the scenes ------------------------------------------------------------------------------------------------


async def _nothing() -> None:
    """Let the call be."""


async def _measured(opened: DiscordForTests, folder: Path) -> dict[str, Any]:
    local, clip = opened.discord, rising()
    async with (
        opened.person("Ada") as ada,
        _bot("roomtone", 1001, local, folder) as ours,
        _bot("voice-recv", 1002, local, folder) as voice_recv,
        node_client(local, HERE / "client.mjs", user_id=CHLOE, listen=ADA, record=folder / "node") as node,
    ):
        await node.event("ready")
        bots = {"roomtone": ours, "voice-recv": voice_recv, "discordjs": _Bot(node.pid, folder / "node", 2)}
        for bot_id in (1001, 1002, CHLOE):
            await ada.voice.meet(bot_id)

        async def join() -> None:
            async with opened.person("Ben") as ben:
                await ben.voice.meet(ADA)

        async def move() -> None:
            await local.fault("migrate")
            answer = await local.fault("migrate", user_id=CHLOE)
            await node.send("server " + json.dumps(answer["servers"][str(CHLOE)]))

        async def scene(meanwhile: Callable[[], Awaitable[object]] = _nothing, **network: float) -> dict[str, Any]:
            local.network.update(network)
            for bot in bots.values():
                bot.begin()
            sent = 0
            for _ in range(UTTERANCES):
                saying = asyncio.create_task(ada.voice.say(clip), name="ada")
                await asyncio.sleep(_MIDST_S)
                await meanwhile()
                said = await saying
                sent += min(said.sent_packets, PACKETS)
                await asyncio.sleep(1.0 if meanwhile is _nothing else 3.0)
            local.network.update(dict.fromkeys(network, 0.0))
            return {"sent": sent} | {name: bot.result() for name, bot in bots.items()}

        local.network.update({"padding": 0.05})
        scenes = {
            "quiet network": await scene(),
            "5 % lost": await scene(loss=0.05),
            "5 % out of order": await scene(reorder=0.05),
            "new keys": await scene(partial(local.fault, "request_reset")),
            "somebody joins and leaves": await scene(join),
            "another voice server": await scene(move),
        }
        told = json.loads(voice_recv.told)
        await local.fault("downgrade")
        await asyncio.sleep(3.0)
        plain = {"quiet network": await scene(), "5 % lost": await scene(loss=0.05)}
        plain["5 % out of order"] = await scene(reorder=0.05)
    return {"encrypted": scenes, "voice-recv ended listening by": told, "without encryption": plain}


async def _main() -> None:
    packages = json.loads((installed_packages() / "@discordjs" / "voice" / "package.json").read_text("utf-8"))
    versions = {"voice-recv": version("discord-ext-voice-recv"), "discordjs": packages["version"]}
    with tempfile.TemporaryDirectory() as folder:
        async with open_discord() as opened:
            measured = await _measured(opened, Path(folder))
    print(json.dumps({"versions": versions, "utterances": UTTERANCES, **measured}, indent=2))


if __name__ == "__main__":
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    asyncio.run(_child(*sys.argv[1:]) if len(sys.argv) > 1 else _main())
