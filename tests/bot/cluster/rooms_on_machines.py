"""Three machines with three room workers, and three rooms in which Ada speaks, for tests in a network of their own.

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
from tests.bot.bot_process import ADA, CLIPS, ada_in, logged, started
from tests.bot.cluster.machines import FIRST_IP, Machine, build_bridge, give_token
from tests.postgres import running_server

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping, Sequence
    from pathlib import Path

    from pydantic import SecretStr

    from rehearsal.people.person import ScriptedPerson
    from tests.bot.bot_process import Process

# Ray gives a machine up after a minute, and two busy cores start three machines.
PATIENCE_S = 180.0
GATEWAY = f"{FIRST_IP}:8572"
OFFER = ("cluster", "rooms", "--gateway", GATEWAY, "--rooms", "3", "--cpus", "0.5")
# Recordings, each with a word that only it has. A room drops what somebody says again at once, so none is said twice.
SENTENCES = (
    ("hello/2-ada.ogg", "bicycle"),
    ("evening/02-ben.ogg", "picnic"),
    ("evening/03-chloe.ogg", "blanket"),
    ("evening/04-ben.ogg", "lemonade"),
    ("evening/05-ada.ogg", "potato"),
    ("evening/10-ada.ogg", "music"),
    ("evening/17-ben.ogg", "lunch"),
    ("evening/18-ada.ogg", "umbrella"),
    ("crowd/1-ada.ogg", "fence"),
    ("crowd/2-ben.ogg", "ladder"),
    ("crowd/3-chloe.ogg", "chairs"),
    ("both-ask/1-chloe.ogg", "museum"),
)
# How the processes that are looked for were started.
WORKER, ACTOR, HEAD = "-m bot cluster rooms ", "ray::WorkerActor", "/gcs_server "
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
    """One server with Ada in its voice channel. `said`: the words of the sentences that she has said."""

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

    async def meet(self) -> None:
        """Wait until the bot hears Ada."""
        await self.ada.meet(ROOMTONE_BOT_ID, timeout_s=PATIENCE_S)

    async def say(self) -> None:
        """Let Ada say her next sentence."""
        file, word = SENTENCES[len(self.said)]
        self.said.append(word)
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
        """Return the word of each sentence that is stored, as often as it is."""
        with psycopg.connect(self.database.get_secret_value()) as database:
            rows = database.execute(
                "SELECT parts FROM turns JOIN sessions ON sessions.id = session_id "
                "WHERE kind = 'speech' AND guild_id = %s",
                [self.id],
            ).fetchall()
        return [word for (parts,) in rows for _, word in SENTENCES for _ in range(parts.casefold().count(word))]


@dataclass
class Cluster:
    """The machines and the rooms."""

    machines: list[Machine]
    rooms: list[Room]
    bot: Process

    @property
    def first(self) -> Machine:
        return self.machines[0]

    async def workers(self) -> dict[str, re.Match[str]]:
        """Return the workers whose process runs, as the operator reads them: name, address, machine, rooms, waiting."""
        told = await asyncio.to_thread(self.first.run, "cluster", "status")
        return {match[1]: match for line in told.splitlines() if (match := _RUNS.match(line))}

    async def until_workers(self, count: int) -> dict[str, re.Match[str]]:
        """Wait until so many workers have a loaded process, and return the workers."""
        due = time.monotonic() + PATIENCE_S
        while True:
            found = await self.workers()
            if len(found) == count and all(int(worker[4]) + int(worker[5]) for worker in found.values()):
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
    """Let Ada speak in these rooms from the block's beginning. After it everything is stored, each sentence once."""
    for room in rooms:
        await room.meet()
    async with asyncio.TaskGroup() as group:
        for room in rooms:
            group.create_task(room.say(), name=f"ada-{room.id}")
        yield
    for room in rooms:
        await room.heard()


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
    build_bridge()
    server = running_server()
    database = server.url(server.create())
    async with AsyncExitStack() as stack:
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        patch.setenv("ROOMTONE_DATABASE_URL", database.get_secret_value())
        locals_: list[LocalDiscord] = []
        for number in range(3):
            beside = locals_[0] if locals_ else None
            locals_.append(
                await stack.enter_async_context(LocalDiscord(guild=guild(number), host=FIRST_IP, beside=beside))
            )
        machines = []
        for number in (1, 2, 3):
            folder = tmp_path_factory.mktemp(f"machine{number}")
            write_settings(folder, whisper_model_dir, locals_[0])
            machines.append(Machine(number, folder))
        first, *others = machines
        await asyncio.to_thread(stack.enter_context, first.up("--cpus", "0.5"))
        bot = await stack.enter_async_context(
            started(
                [sys.executable, "-m", "bot", "run", "--rooms", "processes", "--rooms-listen", GATEWAY],
                locals_[0],
                first.folder,
                DISCORD_TOKEN=f"{ROOMTONE_BOT_ID}.local",
                ROOMTONE_DATABASE_URL=database.get_secret_value(),
                PYTHONPATH=os.pathsep.join(sys.path),
            )
        )
        for machine in others:
            give_token(machine, of=first)
        joins = [machine.up("--join", f"{FIRST_IP}:6379") for machine in others]
        await asyncio.gather(*(asyncio.to_thread(stack.enter_context, join) for join in joins))
        await bot.says("is on Discord")
        # Afterwards nobody waits for machines that hand rooms over: the first process of this network ends all of it.
        for machine in machines:
            stack.callback(machine.kill)
        rooms = [Room(local, await stack.enter_async_context(ada_in(local)), database) for local in locals_]
        made = Cluster(machines, rooms, bot)
        await asyncio.to_thread(first.run, *OFFER, "--workers", "3")
        names, offered = {machine.name for machine in machines}, partial(logged, first.folder, "room_process_offered")
        await until(lambda: {line["machine"] for line in offered()} == names, "a process of each machine")
        for room in rooms:
            await room.local.invoke(ADA, "join")
            await made.until_opened({room.channel_id: 1})
            await room.meet()
            await room.local.invoke(ADA, "quiet")
        yield made
