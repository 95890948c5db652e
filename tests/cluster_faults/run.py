"""A whole run: starts PostgreSQL, the local Discord, Ray's nodes and the rooms, and tries one fault after the other."""

from __future__ import annotations

import asyncio
import multiprocessing
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.cluster.processes import ProcessUse, use_of
from benchmarks.cluster.ray_nodes import RayNodes
from rehearsal.discord.guild.spec import ROOMTONE_BOT_ID
from rehearsal.discord.server import LocalDiscord
from rehearsal.errors import PersonError
from rehearsal.people.clip import Clip
from rehearsal.script.scenario_file import bundled_scenarios, load_scenario
from rehearsal.servers.chat import MODEL, ChatBehaviour, LocalChatServer
from rehearsal.servers.speech import LocalSpeechServer, SpeechBehaviour
from rehearsal.servers.transcription import LocalTranscriptionServer, TranscriptionBehaviour
from tests.cluster_faults.answers import ANSWER_S
from tests.cluster_faults.evidence import read_turns
from tests.cluster_faults.faults import FAULTS, NORMAL, Cluster, Pace
from tests.cluster_faults.rooms import PATIENCE_S, RoomUnderTest, server
from tests.cluster_faults.takes import Sample, Takes, distinct
from tests.cluster_faults.trial import TrialOutcome, try_fault
from tests.postgres import running_server

MODELS = Path("data/models")
# What a room hears with besides the recogniser, which is a script here, and its own model behind that.
NEEDED_MODELS = ("vad-silero", "turn-smart")
OWN_MODEL = "whisper-base"
# A sentence is heard as one: shorter ones are commands and calls.
LEAST_CLIP_S = 1.5
ANSWER = "Yes, I do."
_ANSWER_HZ = 24_000
# Discord keeps a bot that was killed in its channels for minutes; a busy machine takes most of one to start it again.
MAIN_SESSION_S = 90.0
FIRST_WORDS_S = 60.0
_UP_S = 300.0


@dataclass(frozen=True, slots=True)
class RunOptions:
    """`away_s`: how long PostgreSQL is away. `times`: how often each fault is tried. `at_once`: rooms in which somebody
    speaks at the same time, besides those that a fault concerns. `pace`: how long people speak before and after each.
    """

    rooms: int
    nodes: int
    away_s: float
    times: int
    at_once: int
    faults: tuple[str, ...]
    pace: Pace = NORMAL


@dataclass(frozen=True, slots=True)
class Seen:
    """What was seen of one run. `spread`: rooms on each node at its beginning. `processes`: what bots took then.
    `without_bot`: a sentence about the rooms in which the bot was missing in the end, so that no more faults were
    tried; empty: it was in all.
    """

    spread: Mapping[str, int]
    processes: Sequence[ProcessUse]
    outcomes: Mapping[str, Sequence[TrialOutcome]]
    without_bot: str = ""


async def run(options: RunOptions, folder: Path, say: Callable[[str], None]) -> Seen:
    """Break a cluster with each fault, as often as wanted, in a new cluster each time: Ray does not move bots back to a
    node that was lost. `folder`: of the nodes. `say`: gets a line for whoever waits.
    """
    spread: Mapping[str, int] = {}
    processes: Sequence[ProcessUse] = ()
    outcomes: dict[str, list[TrialOutcome]] = {}
    for number in range(1, options.times + 1):
        started_at = time.monotonic()
        home = folder / str(number)
        home.mkdir()
        async with running_cluster(options, home, say) as (cluster, url):
            spread = {node.ip: len(cluster.rooms_of(node.pids)) for node in cluster.nodes.all}
            bots = {cluster.pid_of(room) for room in cluster.rooms}
            processes = [use_of([pid]) for pid in bots if pid is not None]
            say(f"rooms: {spread}, set up in {time.monotonic() - started_at:.0f} s")
            for name in options.faults:
                begun = time.monotonic()
                await _spread(cluster)
                fault = FAULTS[name](cluster, options.pace, options.away_s)
                outcome = await try_fault(cluster, fault, url, options.pace, rooms_without_bot)
                outcomes.setdefault(name, []).append(outcome)
                say(f"{name} {number} ({time.monotonic() - begun:.0f} s): {outcome}")
                if outcome.absent:
                    # What was seen until then is not lost with the run.
                    rooms = ", ".join(map(str, outcome.absent))
                    missing = f"After {name} {number} the bot did not come into these rooms: {rooms}."
                    return Seen(spread, processes, outcomes, missing)
    return Seen(spread, processes, outcomes)


@asynccontextmanager
async def running_cluster(
    options: RunOptions, folder: Path, say: Callable[[str], None]
) -> AsyncIterator[tuple[Cluster, str]]:
    """Yield a cluster whose rooms all hear, and its database's URL. There are as many bots as nodes."""
    database = await asyncio.to_thread(running_server)
    url = database.url(await asyncio.to_thread(database.create)).get_secret_value()
    samples = await asyncio.to_thread(_samples)
    turns = asyncio.Semaphore(options.at_once)
    async with AsyncExitStack() as stack:
        takes = Takes(stack.enter_context(ProcessPoolExecutor(1, multiprocessing.get_context("spawn"))))
        recogniser = TranscriptionBehaviour(takes.recognise)
        hearing = await stack.enter_async_context(LocalTranscriptionServer(recogniser))
        voice = await stack.enter_async_context(LocalSpeechServer(SpeechBehaviour(_tone)))
        model = await stack.enter_async_context(LocalChatServer(ChatBehaviour(answer=lambda call: ANSWER)))
        rooms: list[RoomUnderTest] = []
        for number in range(options.rooms):
            beside = rooms[0].discord if rooms else None
            guild = server(number, shards=options.nodes)
            discord = await stack.enter_async_context(
                LocalDiscord(guild=guild, beside=beside, main_session_s=MAIN_SESSION_S)
            )
            *said, question = samples[number :: options.rooms]
            rooms.append(RoomUnderTest(number, discord, takes, said, question, turns))
        environment = {
            "DISCORD_TOKEN": f"{ROOMTONE_BOT_ID}.local",
            "ROOMTONE_DISCORD__API_BASE": rooms[0].discord.api_base,
            "SSL_CERT_FILE": str(rooms[0].discord.certificate_path),
            "ROOMTONE_DATABASE_URL": url,
            "ROOMTONE_ASR__BASE_URL": hearing.base_url,
            "ROOMTONE_SPEAKING__BASE_URL": voice.base_url,
            "ROOMTONE_LLM__BASE_URL": model.base_url,
            "ROOMTONE_LLM__MODEL": MODEL,
            "ROOMTONE_PARTICIPATION__VOICE_MODE": "name",
            "ROOMTONE_MODELS__DIRECTORY": str(_models(folder, with_own="recogniser" in options.faults)),
            "ROOMTONE_WEB__PORT": "0",
        }
        # Every node could take over what the others have.
        nodes = await stack.enter_async_context(RayNodes(folder, [options.nodes] * options.nodes, environment))
        say(f"{options.nodes} nodes run")
        await _start_bots(nodes)
        cluster = Cluster(nodes, rooms, database, recogniser)
        for room in rooms:
            room.quiet.set()
            await stack.enter_async_context(room.entered())
            await room.call_bot()
            await room.say(room.samples[0])
            say(f"room {room.number + 1} of {options.rooms} is open")
        await _heard(rooms, url)
        yield cluster, url


async def _start_bots(nodes: RayNodes) -> None:
    """Let Ray place a bot on each node, and wait until they serve."""
    count = str(len(nodes.all))
    await nodes.roomtone("cluster", "up", "--shards", count, "--groups", count)
    await _all_served(nodes)


async def _spread(cluster: Cluster) -> None:
    """Place the bots anew if all are on the head, as an operator does: Ray moves none back to a node that was lost."""
    if not any(cluster.rooms_of(node.pids) for node in cluster.nodes.all[1:]):
        await cluster.nodes.roomtone("cluster", "down")
        await _start_bots(cluster.nodes)
        await rooms_without_bot(cluster)


async def rooms_without_bot(cluster: Cluster) -> tuple[int, ...]:
    """Wait until every shard is served and the bot is in every room. Returns the rooms in which it does not come."""
    await _all_served(cluster.nodes)
    until = time.monotonic() + PATIENCE_S
    absent: list[int] = []
    for room in cluster.rooms:
        try:
            async with asyncio.timeout(max(0.0, until - time.monotonic())):
                await room.meet_bot()
        except (TimeoutError, PersonError):
            absent.append(room.number)
    return tuple(absent)


async def _all_served(nodes: RayNodes) -> None:
    """Wait until `roomtone cluster status` says that every shard is served. Raises TimeoutError."""
    async with asyncio.timeout(_UP_S):
        while "serve" in (said := await nodes.roomtone("cluster", "status")) or "not running" in said:  # noqa: ASYNC110
            await asyncio.sleep(1)


async def _heard(rooms: Sequence[RoomUnderTest], url: str) -> None:
    """Wait until the first words of every room are stored. Raises AssertionError."""
    waiting: set[int] = set()
    for _ in range(round(FIRST_WORDS_S)):
        stored = {turn.guild_id for turn in await asyncio.to_thread(read_turns, url) if turn.text}
        waiting = {room.guild_id for room in rooms} - stored
        if not waiting:
            return
        await asyncio.sleep(1)
    raise AssertionError(f"rooms of the servers {waiting} heard nothing")


def _samples() -> list[Sample]:
    """Return the bundled recordings, the longest first, so that each room gets like ones. Left out is what calls the
    bot by name: a bot that hears with its own model would answer.
    """
    paths = [
        say.audio
        for file in bundled_scenarios().values()
        for say in load_scenario(file).says
        if say.audio is not None and "roomtone" not in say.say.lower()
    ]
    clips = distinct([Clip.load(path) for path in paths], least_s=LEAST_CLIP_S)
    return [Sample.of(clip) for clip in sorted(clips, key=lambda clip: -clip.duration_s)]


def _models(folder: Path, *, with_own: bool) -> Path:
    """Return a folder of models without those that are scripts here, which would only take memory. `with_own`: with the
    bots' own model behind the endpoint.
    """
    models = folder / "models"
    models.mkdir()
    for name in (*NEEDED_MODELS, *([OWN_MODEL] if with_own else [])):
        (models / name).symlink_to((MODELS / name).absolute())
    return models


async def _tone(text: str) -> tuple[NDArray[np.int16], int]:
    """Return the sound of any sentence: a tone that swells, as no silence is left out of it."""
    times = np.arange(round(ANSWER_S * _ANSWER_HZ)) / _ANSWER_HZ
    return (6_000 * np.sin(2 * np.pi * 220 * times) * np.sin(2 * np.pi * 3 * times) ** 2).astype(np.int16), _ANSWER_HZ
