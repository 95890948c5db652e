"""What one bot takes that serves some rooms: `roomtone run` in the local Discord.

Unless it recognises by itself, its recogniser is a local endpoint that answers at once with the same words, so that
the processor time is that of rooms alone.
"""

from __future__ import annotations

import asyncio
import json
import signal
import tempfile
import time
from collections import Counter
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.cluster.processes import family, signal_family, start_process, use_of, without_settings
from benchmarks.figures import spread
from benchmarks.report import BenchmarkError, Json
from bot.logs.log_file import log_path
from rehearsal.discord.guild.spec import ROOMTONE_BOT_ID, Channel, GuildSpec, Member
from rehearsal.discord.server import LocalDiscord
from rehearsal.errors import PersonError
from rehearsal.people.clip import Clip
from rehearsal.people.person import ScriptedPerson, scripted_member
from rehearsal.servers.transcription import (
    LocalTranscriptionServer,
    Transcription,
    TranscriptionBehaviour,
    TranscriptionRequest,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


_PEOPLE = ((2001, "Ada"), (2002, "Ben"))
_START_S, _MEET_S = 120.0, 60.0
_GAP_S = 0.5
# A text that comes later than that is missing.
_LAST_TEXTS_S = 5.0
_WORDS = "we spoke about the garden and the long way home by the lake"


async def measure_bot(
    models: Path, clips: Sequence[str], *, rooms: int, seconds: float, recognises: bool = False
) -> Mapping[str, Json]:
    """Run a bot with so many rooms, and return how it started, its memory and its processor time: in silence, and for
    each second of speech. `seconds`: of silence, and then of speech. `recognises`: with its own
    model; then it is returned too how soon texts came. Raises `BenchmarkError`.
    """
    loaded = [await asyncio.to_thread(Clip.load, Path(clip)) for clip in clips]
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="roomtone-bot-")))
        hearing = await stack.enter_async_context(LocalTranscriptionServer(TranscriptionBehaviour(_hear)))
        discords = [await stack.enter_async_context(LocalDiscord(guild=_server(0)))]
        for number in range(1, rooms):
            discord = LocalDiscord(guild=_server(number), beside=discords[0])
            discords.append(await stack.enter_async_context(discord))
        environment = {
            "DISCORD_TOKEN": f"{ROOMTONE_BOT_ID}.local",
            "ROOMTONE_DISCORD__API_BASE": discords[0].api_base,
            "SSL_CERT_FILE": str(discords[0].certificate_path),
            **({} if recognises else {"ROOMTONE_ASR__BASE_URL": hearing.base_url}),
            "ROOMTONE_MODELS__DIRECTORY": str(models),
            "ROOMTONE_PARTICIPATION__VOICE_MODE": "name",
            "ROOMTONE_WEB__PORT": "0",
        }
        (folder / "roomtone.toml").touch()
        words, settings = ("-m", "bot", "run"), without_settings(environment)
        begun = time.monotonic()
        bot = await start_process(words, folder, settings, until="is on Discord", within_s=_START_S)
        connected_s, at_start = time.monotonic() - begun, use_of(family(bot.pid))
        # In reverse order.
        stack.push_async_callback(bot.wait)
        stack.callback(signal_family, bot.pid, signal.SIGTERM)
        people = [await _opened(stack, discord) for discord in discords]
        before = use_of(family(bot.pid)).cpu_s
        await asyncio.sleep(seconds)
        silent_s = (use_of(family(bot.pid)).cpu_s - before) / seconds
        before, begun = use_of(family(bot.pid)).cpu_s, time.monotonic()
        spoken_s = sum(await asyncio.gather(*(_talk(each, loaded, seconds) for each in people)))
        passed_s, used_s = time.monotonic() - begun, use_of(family(bot.pid)).cpu_s - before
        figures: dict[str, Json] = {
            "rooms": rooms,
            # Without a room yet.
            "seconds_to_connected": round(connected_s, 1),
            "rss_mb": round(at_start.rss_mb),
            "memory_mb": round(use_of(family(bot.pid)).memory_mb),
            "cpu_s_a_silent_s": round(silent_s / rooms, 5),
            "cpu_s_a_speech_s": round(max(0.0, used_s - silent_s * passed_s) / spoken_s, 5),
        }
        if recognises:
            await asyncio.sleep(_LAST_TEXTS_S)
            lines = (await asyncio.to_thread(log_path(folder / "data").read_text, "utf-8")).splitlines()
            figures |= texts_of([json.loads(line) for line in lines])
        return figures


def texts_of(lines: Sequence[Mapping[str, Any]]) -> dict[str, Json]:
    """Return how long after the end of speech its text came, by a bot's log, and why speech became none."""
    dropped = Counter(str(line["reason"]) for line in lines if line["event"] == "utterance_dropped")
    late_ms = [float(line["end_to_text_ms"]) for line in lines if line["event"] == "utterance_transcribed"]
    return {"end_to_text_ms": spread(late_ms), "dropped": {**dropped}}


def _server(number: int) -> GuildSpec:
    return GuildSpec(
        id=500 + number,
        name=f"Server {number}",
        voice_channels=(Channel(1_000 + number, "Evening"),),
        text_channel=Channel(2_000 + number, "chat"),
        people=tuple(Member(person, name, moderator=True) for person, name in _PEOPLE),
    )


async def _opened(stack: AsyncExitStack, discord: LocalDiscord) -> list[ScriptedPerson]:
    """Bring two people into a room, let one call the bot, and return them once they have met it."""
    people = [await stack.enter_async_context(scripted_member(discord, person)) for person, _ in _PEOPLE]
    await discord.invoke(_PEOPLE[0][0], "join")
    try:
        for person in people:
            await person.meet(ROOMTONE_BOT_ID, timeout_s=_MEET_S)
    except PersonError as error:
        raise BenchmarkError(f"The bot did not come to {discord.guild.name}. Run this on an idle machine.") from error
    return people


async def _talk(people: Sequence[ScriptedPerson], clips: Sequence[Clip], seconds: float) -> float:
    """Let two people speak in turn, and return how many seconds of recordings they spoke."""
    begun, spoken, number = time.monotonic(), 0.0, 0
    while time.monotonic() - begun < seconds:
        clip = clips[number % len(clips)]
        await people[number % len(people)].say(clip)
        spoken += clip.duration_s
        number += 1
        await asyncio.sleep(_GAP_S)
    return spoken


async def _hear(request: TranscriptionRequest) -> Transcription:
    return Transcription(_WORDS)
