"""A whole run: starts PostgreSQL, the local Discord, the nodes and the rooms, and tries one fault after the other."""

from __future__ import annotations

import asyncio
import itertools
import multiprocessing
import time
from concurrent.futures import ProcessPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.cluster.nodes import CLUSTER_PLACE, Nodes
from benchmarks.cluster.processes import use_of
from rehearsal.discord.server import LocalDiscord
from rehearsal.people.clip import Clip
from rehearsal.servers.chat import MODEL, ChatBehaviour, LocalChatServer
from rehearsal.servers.free_port import free_port
from rehearsal.servers.speech import LocalSpeechServer, SpeechBehaviour
from rehearsal.servers.transcription import LocalTranscriptionServer, TranscriptionBehaviour
from tests.cluster_faults.answers import ANSWER_S
from tests.cluster_faults.evidence import read_turns
from tests.cluster_faults.faults import (
    NORMAL,
    Cluster,
    DrainedNode,
    FrozenNode,
    KilledGateway,
    KilledNode,
    KilledRoom,
    NoFault,
    NothingToBreakError,
    StoppedDatabase,
)
from tests.cluster_faults.pool import POOL, KilledPool, Pool
from tests.cluster_faults.rooms import RoomUnderTest, server
from tests.cluster_faults.settled import processes_wait, rooms_without_bot
from tests.cluster_faults.takes import Sample, Takes, distinct
from tests.cluster_faults.trial import try_fault
from tests.postgres import running_server

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from benchmarks.cluster.processes import ProcessUse
    from tests.cluster_faults.faults import Fault, Pace
    from tests.cluster_faults.trial import Outcome

SCENARIOS = Path("rehearsal/scenarios")
MODELS = Path("data/models")
# What a room hears with besides the recogniser, which is a script here.
NEEDED_MODELS = ("vad-silero", "turn-smart")
# A sentence is heard as one: shorter ones are commands and calls.
LEAST_CLIP_S = 1.5
ANSWER = "Yes, I do."
_ANSWER_HZ = 24_000
# Discord keeps a bot that was killed in its channels for minutes; a busy machine takes most of one to start it again.
MAIN_SESSION_S = 90.0
FIRST_WORDS_S = 60.0


@dataclass(frozen=True, slots=True)
class RunOptions:
    """`each`: how many rooms share a process. `waiting`: how many processes wait on each node but the first. `away_s`:
    how long PostgreSQL is away. `times`: how often each fault is tried. `at_once`: rooms in which somebody speaks at
    the same time, besides those that a fault concerns. `pace`: how long people speak before and after each.
    """

    rooms: int
    nodes: int
    each: int
    waiting: int
    away_s: float
    times: int
    at_once: int
    faults: tuple[str, ...]
    pace: Pace = NORMAL


@dataclass(frozen=True, slots=True)
class Seen:
    """What was seen of one run. `spread`: rooms on each node at its beginning. `processes`: what those of rooms
    took then. `without_bot`: a sentence about the rooms in which the bot was missing in the end, so that no more faults
    were tried; empty: it was in all.
    """

    spread: Mapping[str, int]
    processes: Sequence[ProcessUse]
    outcomes: Mapping[str, Sequence[Outcome]]
    without_bot: str = ""


def faults(options: RunOptions) -> dict[str, Fault]:
    """Return every fault by name."""
    return {
        "calm": NoFault(),
        "room": KilledRoom(),
        "node": KilledNode(options.pace.back_s),
        "frozen": FrozenNode(),
        "drained": DrainedNode(),
        "pool": KilledPool(),
        "database": StoppedDatabase(options.away_s),
        "gateway": KilledGateway(),
    }


FAULTS = ("calm", "room", "node", "frozen", "drained", "pool", "database", "gateway")


async def run(options: RunOptions, folder: Path, say: Callable[[str], None]) -> Seen:
    """Run a cluster and break it. `folder`: of the nodes. `say`: gets a line for whoever waits."""
    started_at = time.monotonic()
    async with running_cluster(options, folder, say) as (cluster, url):
        pids = {room.number: cluster.pid_of(room) for room in cluster.rooms}
        spread = {node.name: len(cluster.rooms_of(node.pids)) for node in cluster.nodes.all}
        memory = use_of([pid for pid in {*pids.values()} if pid is not None])
        say(f"rooms: {spread}")
        say(f"set up in {time.monotonic() - started_at:.0f} s")
        outcomes: dict[str, list[Outcome]] = {}
        known = faults(options)
        absent, last = await rooms_without_bot(cluster), "the start"
        for name, number in itertools.product(options.faults, range(1, options.times + 1)):
            if absent:
                # What was seen until then is not lost with the run.
                break
            begun = time.monotonic()
            last = f"{name} {number}"
            try:
                outcome = await try_fault(cluster, known[name], url, options.pace)
            except NothingToBreakError:
                say(f"{last}: left out, because only the first node has rooms")
                continue
            outcomes.setdefault(name, []).append(outcome)
            absent = outcome.absent
            say(f"{last} ({time.monotonic() - begun:.0f} s): {outcome}")
        return Seen(spread, memory, outcomes, _without_bot(absent, last))


def _without_bot(rooms: Sequence[int], last: str) -> str:
    """Return the sentence about rooms into which the bot did not come after `last`; empty if it is in all."""
    if not rooms:
        return ""
    return f"After {last} the bot did not come into these rooms: {', '.join(map(str, rooms))}."


@asynccontextmanager
async def running_cluster(
    options: RunOptions, folder: Path, say: Callable[[str], None]
) -> AsyncIterator[tuple[Cluster, str]]:
    """Yield a cluster whose rooms all hear, and its database's URL."""
    database = await asyncio.to_thread(running_server)
    url = database.url(await asyncio.to_thread(database.create)).get_secret_value()
    samples = await asyncio.to_thread(_samples)
    turns = asyncio.Semaphore(options.at_once)
    async with AsyncExitStack() as stack:
        takes = Takes(stack.enter_context(ProcessPoolExecutor(1, multiprocessing.get_context("spawn"))))
        hearing = await stack.enter_async_context(LocalTranscriptionServer(TranscriptionBehaviour(takes.recognise)))
        pooled = await stack.enter_async_context(
            LocalTranscriptionServer(TranscriptionBehaviour(partial(takes.recognise, recogniser=POOL)))
        )
        voice = await stack.enter_async_context(LocalSpeechServer(SpeechBehaviour(_tone)))
        model = await stack.enter_async_context(LocalChatServer(ChatBehaviour(answer=lambda call: ANSWER)))
        rooms: list[RoomUnderTest] = []
        for number in range(options.rooms):
            beside = rooms[0].discord if rooms else None
            discord = await stack.enter_async_context(
                LocalDiscord(guild=server(number), beside=beside, main_session_s=MAIN_SESSION_S)
            )
            *said, question = samples[number :: options.rooms]
            rooms.append(RoomUnderTest(number, discord, takes, said, question, turns))
        environment = {
            "ROOMTONE_DATABASE_URL": url,
            "ROOMTONE_ASR__ENGINE": "endpoint",
            "ROOMTONE_ASR__BASE_URL": hearing.base_url,
            "ROOMTONE_SPEAKING__ENGINE": "endpoint",
            "ROOMTONE_SPEAKING__BASE_URL": voice.base_url,
            "ROOMTONE_SPEAKING__FALLBACK": "none",
            "ROOMTONE_LLM__BASE_URL": model.base_url,
            "ROOMTONE_LLM__MODEL": MODEL,
            "ROOMTONE_COMPACTION__SUMMARISER": "extractive",
            "ROOMTONE_PARTICIPATION__VOICE_MODE": "name",
            "ROOMTONE_MODELS__DIRECTORY": str(_models(folder)),
            "ROOMTONE_WEB__PORT": "0",
        }
        names = tuple(f"node{number + 1}" for number in range(options.nodes))
        # Every node could take over what another one has.
        pool = Pool(free_port(), pooled.base_url, folder) if "pool" in options.faults else None
        nodes = Nodes(
            rooms[0].discord,
            folder,
            environment,
            names,
            rooms_a_node=options.rooms,
            rooms_each=options.each,
            waiting=options.waiting,
            words=() if pool is None else ("--cluster", pool.address),
        )
        await stack.enter_async_context(nodes)
        if pool is not None:
            await stack.enter_async_context(pool.running(nodes.first.folder / CLUSTER_PLACE))
        say(f"{options.nodes} nodes run")
        # Otherwise all rooms are where a process was loaded first.
        await processes_wait(nodes)
        cluster = Cluster(nodes, rooms, database, pool)
        for room in rooms:
            room.quiet.set()
            await stack.enter_async_context(room.entered())
            await room.call_bot()
            await room.say(room.samples[0])
            say(f"room {room.number + 1} of {options.rooms} is open")
        await _heard(rooms, url)
        yield cluster, url


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
    """Return the bundled recordings, the longest first, so that each room gets like ones."""
    clips = distinct([Clip.load(path) for path in sorted(SCENARIOS.glob("*/*.ogg"))], least_s=LEAST_CLIP_S)
    return [Sample.of(clip) for clip in sorted(clips, key=lambda clip: -clip.duration_s)]


def _models(folder: Path) -> Path:
    """Return a folder of models without those that are scripts here, which would only take memory."""
    models = folder / "models"
    models.mkdir()
    for name in NEEDED_MODELS:
        (models / name).symlink_to((MODELS / name).absolute())
    return models


async def _tone(text: str) -> tuple[NDArray[np.int16], int]:
    """Return the sound of any sentence: a tone that swells, as no silence is left out of it."""
    del text
    times = np.arange(round(ANSWER_S * _ANSWER_HZ)) / _ANSWER_HZ
    return (6_000 * np.sin(2 * np.pi * 220 * times) * np.sin(2 * np.pi * 3 * times) ** 2).astype(np.int16), _ANSWER_HZ
