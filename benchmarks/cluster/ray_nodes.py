"""Ray's nodes on this one machine, each at a loopback address of its own, in a network of their own.

Ray listens on every address, so nothing here runs in the machine's own network (`OWN_NETWORK`).
"""

from __future__ import annotations

import asyncio
import shutil
import signal
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

from benchmarks.cluster.processes import family, signal_family, start_process, without_settings
from benchmarks.report import BenchmarkError
from bot.cluster.ray_access import ray_environment, write_ray_files
from bot.store.forgettings import KEY_FILE

if TYPE_CHECKING:
    from asyncio.subprocess import Process
    from collections.abc import Mapping, Sequence
    from pathlib import Path

# A new network has nothing but loopback, which is down. Ray keeps its sockets and logs in /tmp/ray, which is this
# network's own too. The process that ends the block ends everything in it.
OWN_NETWORK = ("unshare", "--net", "--pid", "--mount", "--fork", "--kill-child", "--mount-proc")
_UP = 'ip link set lo up && mkdir -p /tmp/ray && mount -t tmpfs none /tmp/ray && exec "$@"'
_NO_NETWORK = (
    "This needs a network of its own, because Ray listens on every address: run it on Linux, as root, with `unshare`, "
    "`mount` and `ip` installed."
)
_STARTED = "Ray runtime started."
_START_S = 600.0
_OBJECT_STORE_BYTES = 100_000_000
# Ray gives up its own parts after half a minute, which a busy machine takes.
_PATIENCE = {"RAY_agent_register_timeout_ms": "500000", "RAY_raylet_start_wait_time_s": "500"}


def in_own_network(*command: str) -> list[str]:
    """Return the command line that runs `command`, or what is put after it, in a network of its own."""
    return [*OWN_NETWORK, "sh", "-c", _UP, "sh", *command]


async def check_own_network() -> None:
    """Raise `BenchmarkError` if this process may not make a network of its own."""
    if shutil.which("unshare") is None or shutil.which("ip") is None:
        raise BenchmarkError(_NO_NETWORK)
    quiet = asyncio.subprocess.DEVNULL
    trial = await asyncio.create_subprocess_exec(*in_own_network("true"), stdout=quiet, stderr=quiet)
    if await trial.wait():
        raise BenchmarkError(_NO_NETWORK)


@dataclass(slots=True)
class RayNode:
    """One node. `cpus`: what Ray may give away there. `process`: `ray start`; None while it is down."""

    ip: str
    cpus: int
    folder: Path
    process: Process | None = None

    @property
    def pids(self) -> list[int]:
        """Return its processes, with the bots that it keeps."""
        return [] if self.process is None else family(self.process.pid)


@dataclass(slots=True)
class RayNodes:
    """Nodes with these CPUs, the first one is the head. `environment`: of all, and of the bots that Ray keeps.

    *Ownership*: an async context manager; every process has ended afterwards.
    """

    folder: Path
    cpus: Sequence[int]
    environment: Mapping[str, str]
    all: list[RayNode] = field(default_factory=list)

    @property
    def own_environment(self) -> dict[str, str]:
        """Return the environment of everything here."""
        ray = ray_environment(self.folder / "data" / "cluster")
        return without_settings({**_PATIENCE, **self.environment, **ray})

    async def __aenter__(self) -> Self:
        await asyncio.to_thread(write_ray_files, self.folder / "data" / "cluster", {})
        (self.folder / "roomtone.toml").touch()
        try:
            for number, cpus in enumerate(self.cpus, start=1):
                node = RayNode(f"127.0.0.{number}", cpus, self.folder / f"node{number}")
                (node.folder / "data").mkdir(parents=True)
                # As the page tells the operator: all machines have the same.
                (node.folder / "data" / KEY_FILE).write_bytes(bytes(32))
                (node.folder / "roomtone.toml").touch()
                self.all.append(node)
                await self.start(node)
        except BaseException:
            await self._end()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._end()

    async def start(self, node: RayNode) -> None:
        """Start a node, and return when Ray says that it runs. Raises `BenchmarkError`."""
        where = ("--head", "--port", "6379", "--include-dashboard", "false")
        words = (
            *("-m", "ray.scripts.scripts", "start", "--block", "--disable-usage-stats"),
            *(where if node is self.all[0] else ("--address", f"{self.all[0].ip}:6379")),
            *("--node-ip-address", node.ip, "--num-cpus", str(node.cpus)),
            *("--object-store-memory", str(_OBJECT_STORE_BYTES)),
        )
        node.process = await start_process(words, node.folder, self.own_environment, until=_STARTED, within_s=_START_S)

    async def roomtone(self, *words: str) -> str:
        """Run a command of Roomtone on the first node, and return what it said. Raises `BenchmarkError`."""
        command = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "bot", *words),
            cwd=self.folder,
            env=self.own_environment,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        said, _ = await command.communicate()
        if command.returncode:
            raise BenchmarkError(f"`roomtone {' '.join(words)}` failed: {said.decode()[-600:]}")
        return said.decode()

    async def kill(self, node: RayNode) -> None:
        """End every process of a node at once."""
        assert node.process is not None, "it runs"
        signal_family(node.process.pid, signal.SIGKILL)
        await node.process.wait()
        node.process = None

    async def _end(self) -> None:
        for node in reversed(self.all):
            if node.process is not None:
                await self.kill(node)
