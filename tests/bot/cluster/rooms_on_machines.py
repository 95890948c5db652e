"""Three machines with three room workers, and rooms in which Ada speaks, for tests in a network of their own.

The test, the local Discord and the bot run on the first machine. The machines share this one's disk, so they reach
PostgreSQL by its socket; all else goes over their networks.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import re
import signal
import sys
import time
from collections import Counter
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import psycopg
import pytest
import pytest_asyncio

from rehearsal.discord.guild.spec import ROOMTONE_BOT_ID, Channel, GuildSpec
from rehearsal.discord.server import LocalDiscord
from rehearsal.people.clip import Clip
from tests.bot.bot_process import ADA, CLIPS, ada_in, logged, started, voice_session
from tests.bot.cluster.machines import FIRST_IP, Machine, build_bridge, give_token
from tests.postgres import running_server

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
    from pathlib import Path

    from pydantic import SecretStr

    from rehearsal.people.person import ScriptedPerson
    from tests.bot.bot_process import Process

# Ray gives a machine up after a minute, and two busy cores start three machines.
PATIENCE_S = 180.0
GATEWAY = f"{FIRST_IP}:8572"
OFFER = ("cluster", "rooms", "--gateway", GATEWAY, "--rooms", "3", "--cpus", "0.5")
# What the bot's log calls its own machine, beside the name that the worker there has.
BESIDE_BOT = "here"
# Discord keeps a bot that was killed in its channels; a busy machine takes most of this to start it again.
MAIN_SESSION_S = 90.0
# Two cores carry no more people who speak at once, besides all that hears them.
AT_ONCE = 3
# Packets of 20 ms: who has sent so many has begun a sentence, and all of those here are longer.
MID_SENTENCE_PACKETS = 50
# Recordings, each with two words that only it has: on a busy machine one may be misheard.
# A room drops what somebody says again at once, so none is said twice.
SENTENCES = (
    ("hello/2-ada.ogg", ("bicycle", "market")),
    ("evening/02-ben.ogg", ("picnic", "saturday")),
    ("evening/03-chloe.ogg", ("blanket", "grass")),
    ("evening/04-ben.ogg", ("lemonade", "bread")),
    ("evening/05-ada.ogg", ("potato", "salad")),
    ("evening/10-ada.ogg", ("music", "hear")),
    ("evening/17-ben.ogg", ("lunch", "play")),
    ("evening/18-ada.ogg", ("umbrella", "case")),
    ("crowd/1-ada.ogg", ("fence", "garden")),
    ("crowd/2-ben.ogg", ("ladder", "sunday")),
    ("crowd/3-chloe.ogg", ("chairs", "uncle")),
    ("both-ask/1-chloe.ogg", ("museum", "opens")),
)
# How the processes that are looked for were started.
WORKER, ACTOR, HEAD = "-m bot cluster rooms ", "ray::WorkerActor", "/gcs_server "
ROOM = "-m bot room "
# Those that a worker has started know their machine's name, and the bot's own do not.
OFFERED_ROOM = "--machine "
_RUNS = re.compile(r"(\S+-worker-\d+): on (\S+) \((\S+)\), processes: (\d+) with rooms, (\d+) waiting")


@dataclass(frozen=True, slots=True)
class Placed:
    """Where a room is: the name of its machine, and the number of its process's run."""

    machine: str
    run_id: str


@dataclass
class Room:
    """One server with Ada in its voice channel. `said`: the sentences that she has said."""

    local: LocalDiscord
    ada: ScriptedPerson
    database: SecretStr
    said: list[str] = field(default_factory=list)

    @property
    def id(self) -> int:
        return self.local.guild.id

    @property
    def channel_id(self) -> int:
        return self.local.guild.voice_channels[0].id

    @property
    def sent_packets(self) -> int:
        """Return how many packets of sound Ada has sent."""
        return self.ada.counts.sent

    async def meet(self) -> None:
        """Wait until the bot hears Ada."""
        await self.ada.meet(ROOMTONE_BOT_ID, timeout_s=PATIENCE_S)

    async def renewed(self, former: str | None) -> None:
        """Wait until the bot has another voice session than `former`."""
        async with asyncio.timeout(PATIENCE_S):
            while voice_session(self.local) in {None, former}:  # noqa: ASYNC110 - nobody tells of it
                await asyncio.sleep(0.2)

    async def say(self) -> None:
        """Let Ada say her next sentence."""
        file, _ = SENTENCES[len(self.said)]
        self.said.append(file)
        await self.ada.say(Clip.load(CLIPS.parent / file))

    async def heard(self) -> None:
        """Wait until every sentence is stored: each once."""
        await until(lambda: {*self.stored()} == {*self.said}, f"{self.said[-1]!r} in {self.id}")
        assert sorted(self.stored()) == sorted(self.said)

    def turns(self) -> list[tuple[str, int]]:
        """Return session and number of every stored turn."""
        with psycopg.connect(self.database.get_secret_value()) as database:
            return database.execute(
                "SELECT session_id, seq FROM turns JOIN sessions ON sessions.id = session_id "
                "WHERE guild_id = %s ORDER BY session_id, seq",
                [self.id],
            ).fetchall()

    def stored(self) -> list[str]:
        """Return each sentence that is stored, as often as turns have a word of it, or as all have both of its words.
        A machine that is too busy to speak evenly makes a recogniser hear one word twice in one turn.
        """
        with psycopg.connect(self.database.get_secret_value()) as database:
            rows = database.execute(
                "SELECT parts FROM turns JOIN sessions ON sessions.id = session_id "
                "WHERE kind = 'speech' AND guild_id = %s",
                [self.id],
            ).fetchall()
        turns = [parts.casefold() for (parts,) in rows]
        return [file for file, words in SENTENCES for _ in range(_times_said(words, turns))]


def _times_said(words: Sequence[str], turns: Sequence[str]) -> int:
    in_turns = max(sum(word in turn for turn in turns) for word in words)
    return max(in_turns, min(sum(turn.count(word) for turn in turns) for word in words))


@dataclass
class Cluster:
    """The machines and the rooms. `start_bot`: returns the bot's next process once it is on Discord."""

    machines: list[Machine]
    rooms: list[Room]
    bot: Process
    start_bot: Callable[[], Awaitable[Process]]

    @property
    def first(self) -> Machine:
        return self.machines[0]

    async def workers(self) -> dict[str, re.Match[str]]:
        """Return the workers whose process runs, as the operator reads them: name, address, machine, rooms, waiting."""
        told = await asyncio.to_thread(self.first.run, "cluster", "status")
        return {match[1]: match for line in told.splitlines() if (match := _RUNS.match(line))}

    async def until_workers(self, count: int, *, waiting: int = 0) -> dict[str, re.Match[str]]:
        """Wait until so many workers have a loaded process, and return the workers. `waiting`: how many processes of
        each have no room, at least.
        """
        due = time.monotonic() + PATIENCE_S
        while True:
            found = await self.workers()
            if len(found) == count and all(
                int(worker[4]) + int(worker[5]) and int(worker[5]) >= waiting for worker in found.values()
            ):
                return found
            assert time.monotonic() < due, found

    def placed(self) -> dict[int, Placed]:
        """Return where each room is, by its server."""
        lines = logged(self.first.folder, "room_placed")
        return {int(str(line["guild_id"])): Placed(str(line["machine"]), str(line["run_id"])) for line in lines}

    def rooms_on(self, machine: Machine) -> list[Room]:
        """Return the rooms on a machine."""
        placed = self.placed()
        return [room for room in self.rooms if placed[room.id].machine == machine.name]

    def processes(self, word: str) -> list[int]:
        """Return the processes of all machines whose command line has a word."""
        return [process for machine in self.machines for process in machine.processes(word)]

    def processes_of(self, runs: Collection[str]) -> list[int]:
        """Return the processes of rooms with these numbers of runs."""
        return [process for run in runs for machine in self.machines for process in machine.processes(ROOM, run)]

    def another_with_rooms(self) -> Machine:
        """Return a machine with rooms that is not the first."""
        return next(machine for machine in self.machines[1:] if self.rooms_on(machine))

    def opened(self) -> Counter[object]:
        """Return how often each room was opened, by its voice channel."""
        lines = itertools.chain.from_iterable(logged(machine.folder, "room_opened") for machine in self.machines)
        return Counter(line["channel_id"] for line in lines)

    @asynccontextmanager
    async def moved(self, rooms: Sequence[Room]) -> AsyncIterator[None]:
        """Wait at the end of the block until these rooms are open in other processes, where the bot hears Ada."""
        before = self.opened()
        yield
        await self.until_opened({room.channel_id: before[room.channel_id] + 1 for room in rooms})
        for room in rooms:
            await room.meet()

    async def until_opened(self, times: Mapping[int, int]) -> None:
        """Wait until rooms were opened at least so often, by their voice channels."""
        await until(lambda: all(self.opened()[channel] >= least for channel, least in times.items()), "an open room")


async def hand_over(machine: Machine) -> None:
    """Let a machine leave as its operator does. It has handed its rooms over then, and says so."""
    assert "All rooms are handed over." in await asyncio.to_thread(machine.leave)
    assert machine.processes(WORKER) == machine.processes(OFFERED_ROOM) == []


async def nothing_is_lost_or_doubled(cluster: Cluster) -> None:
    """End the bot. Each server has one session, with every number of a turn once, and each sentence once."""
    status, err = await cluster.bot.ends(signal.SIGTERM)
    assert (status, err.count("Traceback")) == (0, 0)
    for room in cluster.rooms:
        assert sorted(room.stored()) == sorted(room.said)
        turns = room.turns()
        assert len({session for session, _ in turns}) == 1
        assert [number for _, number in turns] == list(range(len(turns)))


async def until(holds: Callable[[], bool], what: str) -> None:
    """Wait for other processes, which tell nobody."""
    due = time.monotonic() + PATIENCE_S
    while not await asyncio.to_thread(holds):
        assert time.monotonic() < due, f"{what} did not come"
        await asyncio.sleep(0.2)


@asynccontextmanager
async def people_speak(rooms: Sequence[Room]) -> AsyncIterator[None]:
    """Let Ada speak in each of these rooms, in a few at once; in one she is in mid-sentence when the block begins.
    After it everything is stored, each sentence once.
    """
    for room in rooms:
        await room.meet()
    turns = asyncio.Semaphore(AT_ONCE)
    before = {room.id: room.sent_packets for room in rooms}
    async with asyncio.TaskGroup() as group:
        for room in rooms:
            group.create_task(in_turn(room.say, turns), name=f"ada-{room.id}")
        await until(
            lambda: any(room.sent_packets - before[room.id] >= MID_SENTENCE_PACKETS for room in rooms), "a sentence"
        )
        yield
    for room in rooms:
        await room.heard()


async def in_turn(say: Callable[[], Awaitable[None]], turns: asyncio.Semaphore) -> None:
    """Say something when it is one's turn."""
    async with turns:
        await say()


async def everyone_is_heard(rooms: Sequence[Room]) -> None:
    """Let Ada speak in each of these rooms, and wait until everything is stored, each sentence once."""
    async with people_speak(rooms):
        pass


def guild(number: int) -> GuildSpec:
    """Return one of the servers."""
    return GuildSpec(
        id=500 + number,
        name=f"Server {number}",
        voice_channels=(Channel(1_000 + number, "Evening"),),
        text_channel=Channel(2_000 + number, "chat"),
    )


def write_settings(folder: Path, whisper: Path, local: LocalDiscord) -> None:
    """Write the settings of a machine."""
    (folder / "roomtone.toml").write_text(
        f'[asr]\nmodel = "{whisper.absolute()}"\ndevice = "cpu"\nlanguage = "en"\n'
        f'[discord]\napi_base = "{local.api_base}"\nca_file = "{local.certificate_path}"\n',
        encoding="utf-8",
    )


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def cluster(tmp_path_factory: pytest.TempPathFactory, whisper_model_dir: Path) -> AsyncIterator[Cluster]:
    """Yield three machines of a cluster with three workers, and three rooms, all of which hear."""
    async with cluster_of(tmp_path_factory, whisper_model_dir, rooms=3) as made:
        yield made


@asynccontextmanager
async def cluster_of(
    folders: pytest.TempPathFactory, whisper: Path, *, rooms: int, rooms_each: int = 1
) -> AsyncIterator[Cluster]:
    """Yield three machines of a cluster with three workers, and so many rooms, all of which hear. `rooms_each`: how
    many share a process. `folders`: makes those of the machines.
    """
    build_bridge()
    server = running_server()
    database = server.url(server.create())
    each = ("--rooms-each", str(rooms_each))
    async with AsyncExitStack() as stack:
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        patch.setenv("ROOMTONE_DATABASE_URL", database.get_secret_value())
        locals_ = await local_servers(stack, rooms)
        machines = [machine_for(locals_[0], number, folders, whisper) for number in (1, 2, 3)]
        first, *others = machines
        await asyncio.to_thread(stack.enter_context, first.up("--cpus", "0.5"))
        start_bot = partial(start_bot_on, first, stack, locals_[0], database, each)
        bot = await start_bot()
        await until(lambda: bool(logged(first.folder, "room_link_opened")), "a process of the bot's own")
        for machine in others:
            give_token(machine, of=first)
        joins = [machine.up("--join", f"{FIRST_IP}:6379") for machine in others]
        await asyncio.gather(*(asyncio.to_thread(stack.enter_context, join) for join in joins))
        # Afterwards nobody waits for machines that hand rooms over: the first process of this network ends all of it.
        for machine in machines:
            stack.callback(machine.kill)
        people = [await stack.enter_async_context(ada_in(local)) for local in locals_]
        there = [Room(local, ada, database) for local, ada in zip(locals_, people, strict=True)]
        made = Cluster(machines, there, bot, start_bot)
        await asyncio.to_thread(first.run, *OFFER, *each, "--workers", "3")
        names, offered = {machine.name for machine in machines}, partial(logged, first.folder, "room_process_offered")
        await until(lambda: {line["machine"] for line in offered()} == names, "a process of each machine")
        for room in there:
            await room.local.invoke(ADA, "join")
            await made.until_opened({room.channel_id: 1})
            await room.meet()
            await room.local.invoke(ADA, "quiet")
        yield made


async def local_servers(stack: AsyncExitStack, count: int) -> list[LocalDiscord]:
    """Return so many servers of one local Discord."""
    made: list[LocalDiscord] = []
    for number in range(count):
        local = LocalDiscord(
            guild=guild(number), host=FIRST_IP, main_session_s=MAIN_SESSION_S, beside=made[0] if made else None
        )
        made.append(await stack.enter_async_context(local))
    return made


def machine_for(local: LocalDiscord, number: int, folders: pytest.TempPathFactory, whisper: Path) -> Machine:
    """Return a machine with its settings."""
    folder = folders.mktemp(f"machine{number}")
    write_settings(folder, whisper, local)
    return Machine(number, folder)


async def start_bot_on(
    machine: Machine, stack: AsyncExitStack, local: LocalDiscord, database: SecretStr, options: Sequence[str]
) -> Process:
    """Start the bot on a machine, and return its process once it is on Discord."""
    listening = ("run", "--rooms", "processes", "--rooms-listen", GATEWAY)
    bot = await stack.enter_async_context(
        started(
            [sys.executable, "-m", "bot", *listening, *options],
            local,
            machine.folder,
            DISCORD_TOKEN=f"{ROOMTONE_BOT_ID}.local",
            ROOMTONE_DATABASE_URL=database.get_secret_value(),
            PYTHONPATH=os.pathsep.join(sys.path),
        )
    )
    await bot.says("is on Discord")
    return bot
