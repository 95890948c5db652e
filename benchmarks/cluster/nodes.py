"""Nodes of rooms on this one machine: the bot on the first, and `roomtone cluster rooms` on the others.

All of them share this machine's loopback. A node is a process with all that it has started.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

from benchmarks.cluster.processes import family, networks_of, signal_family, started_at
from benchmarks.errors import BenchmarkError
from rehearsal.discord.guild.spec import ROOMTONE_BOT_ID
from rehearsal.servers.free_port import free_port

if TYPE_CHECKING:
    from asyncio.subprocess import Process
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from rehearsal.discord.server import LocalDiscord

# Below a node's folder: what belongs to the cluster, with its token.
CLUSTER_PLACE = "data/cluster"
_TOKEN_PLACE = f"{CLUSTER_PLACE}/token"
ON_DISCORD = b"is on Discord"
# A slow machine loads the models and connects within this time.
START_WITHIN_S = 120.0
# A node ends its rooms one after the other.
END_WITHIN_S = 120.0
_PRIVATE = frozenset({"DISCORD_TOKEN", "OPENAI_API_KEY"})


@dataclass(slots=True)
class Node:
    """One node. `words`: the command that runs there, after `roomtone`. `process`: None while it is down."""

    name: str
    folder: Path
    words: tuple[str, ...]
    process: Process | None = None

    @property
    def pids(self) -> list[int]:
        """Return its processes, the first one first."""
        return [] if self.process is None else family(self.process.pid)


@dataclass(slots=True)
class Nodes:
    """The nodes, by `names`. `environment`: the settings of all. `words`: added to every command. `rooms_a_node`: how
    many processes each node but the first may have. `rooms_each`: how many rooms share a process. `waiting`: how many
    loaded processes wait for a room on each node but the first, which has one.

    *Ownership*: an async context manager; every process has ended afterwards.
    """

    discord: LocalDiscord
    folder: Path
    environment: Mapping[str, str]
    names: Sequence[str]
    rooms_a_node: int
    rooms_each: int = 1
    waiting: int = 1
    words: tuple[str, ...] = ()
    all: list[Node] = field(default_factory=list)
    # Rooms that have lost their gateway process, with when they were started: a number may be given to others.
    orphans: dict[int, str] = field(default_factory=dict)

    @property
    def first(self) -> Node:
        """Return the node of the gateway process."""
        return self.all[0]

    async def __aenter__(self) -> Self:
        gateway = f"127.0.0.1:{free_port()}"
        most = ("--rooms", str(self.rooms_a_node), "--waiting", str(self.waiting))
        offering = ("cluster", "rooms", "--gateway", gateway, *most, "--name")
        for number, name in enumerate(self.names):
            words = (*offering, name) if number else ("run", "--rooms", "processes", "--rooms-listen", gateway)
            each = ("--rooms-each", str(self.rooms_each))
            node = Node(name, self.folder / name, (*words, *each, *self.words))
            await asyncio.to_thread(node.folder.mkdir)
            self.all.append(node)
        try:
            await self.start(self.first)
            for node in self.all[1:]:
                await asyncio.to_thread(self._give_token, node)
                await self.start(node)
        except BaseException:
            await self._end()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._end()

    async def start(self, node: Node) -> None:
        """Start what runs on a node; the bot is on Discord afterwards. Raises `BenchmarkError`."""
        (node.folder / "roomtone.toml").touch()
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith("ROOMTONE_") and name not in _PRIVATE
        }
        own = {
            "ROOMTONE_DISCORD__API_BASE": self.discord.api_base,
            "ROOMTONE_DISCORD__CA_FILE": str(self.discord.certificate_path),
            "ROOMTONE_STORAGE__DATA_DIR": str(node.folder / "data"),
            "PYTHONPATH": os.pathsep.join(sys.path),
            "PYTHONUNBUFFERED": "1",
        }
        if node is self.first:
            own["DISCORD_TOKEN"] = f"{ROOMTONE_BOT_ID}.local"
        output = node.folder / "output.txt"
        with output.open("wb") as file:
            node.process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "bot", *node.words),
                cwd=node.folder,
                env={**kept, **own, **self.environment},
                stdin=asyncio.subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                start_new_session=True,
            )
        if node is self.first:
            await _says(node, output)

    async def kill_node(self, node: Node) -> None:
        """End every process of a node at once."""
        assert node.process is not None, "it runs"
        signal_family(node.process.pid, signal.SIGKILL)
        await node.process.wait()
        node.process = None

    async def kill_gateway(self) -> None:
        """End the gateway process alone; the rooms beside it go on for as long as they do."""
        process = self.first.process
        assert process is not None, "it runs"
        self.orphans.update(_identities(family(process.pid)[1:]))
        process.kill()
        await process.wait()
        self.first.process = None

    async def drain(self, node: Node) -> None:
        """Let a node leave: its rooms are handed over, one after the other. Returns when it has ended."""
        process, node.process = node.process, None
        assert process is not None, "it runs"
        await _ended(process)

    def has_waiting(self, node: Node) -> bool:
        """Return whether as many loaded processes as should wait for a room on a node: they have links, and no voice
        connection.
        """
        waiting = sum(networks == {"tcp"} for networks in networks_of(node.pids[1:]).values())
        return waiting >= (1 if node is self.first else self.waiting)

    def _give_token(self, node: Node) -> None:
        (node.folder / _TOKEN_PLACE).parent.mkdir(parents=True, mode=0o700)
        shutil.copy(self.first.folder / _TOKEN_PLACE, node.folder / _TOKEN_PLACE)

    async def _end(self) -> None:
        async with AsyncExitStack() as stack:
            # The gateway process comes first: otherwise the rooms of each other node move on before they end.
            for node in reversed(self.all):
                if node.process is not None:
                    stack.push_async_callback(_ended, node.process)
        _kill_left(self.orphans)


async def _says(node: Node, output: Path) -> None:
    """Wait until the bot says that it is on Discord. Raises `BenchmarkError`."""
    assert node.process is not None, "it was started"
    try:
        async with asyncio.timeout(START_WITHIN_S):
            while ON_DISCORD not in await asyncio.to_thread(output.read_bytes):
                if node.process.returncode is not None:
                    break
                await asyncio.sleep(0.1)
            else:
                return
    except TimeoutError:
        pass
    said = (await asyncio.to_thread(output.read_text, "utf-8"))[-400:]
    raise BenchmarkError(f"The bot did not get on the local Discord. It said: {said}")


async def _ended(process: Process) -> None:
    """Ask a node's process to end, and end whatever is left."""
    below = _identities(family(process.pid)[1:])
    try:
        if process.returncode is None:
            process.terminate()
        async with asyncio.timeout(END_WITHIN_S):
            await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()
    finally:
        _kill_left(below)


def _identities(pids: Sequence[int]) -> dict[int, str]:
    return {pid: started for pid in pids if (started := started_at(pid)) is not None}


def _kill_left(processes: Mapping[int, str]) -> None:
    """End those of the processes that still run."""
    for pid, started in processes.items():
        if started_at(pid) == started:
            signal_family(pid, signal.SIGKILL)
