"""The actor of one group of shards: it keeps `roomtone run --shards …` running as its child.

Ray places it, and starts it anew on another machine when its own is lost. The child gets SIGTERM when the actor ends,
however that ends, and hands its rooms over then (`roomtone run --kept`). A child that has lost its shards to another
process ends with `FENCED_STATUS`, and the actor with it.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from bot.errors import FENCED_STATUS
from bot.shards import WAITS
from voice.retry_pause import retry_pause_s

if TYPE_CHECKING:
    from asyncio.subprocess import Process

    from bot.cluster.shard_groups import ShardGroup

# After a child that has ended at once; doubled up to the longest, and begun anew after one that has lasted.
_FIRST_PAUSE_S: Final = 1.0
_LONGEST_PAUSE_S: Final = 60.0
_STEADY_S: Final = 60.0
# `roomtone run` ends within 55 s of SIGTERM.
_END_WITHIN_S: Final = 60.0
_PIECE_BYTES: Final = 4096


# Without slots: it goes from process to process in pickle, by the names of its fields.
@dataclass(frozen=True)
class KeeperReport:
    """How a group is. `cpus`: what it reserves. `node_id`: Ray's, of its machine. `process`: its bot; None: it is not
    running. `said`: the last thing that it said. `starts`: how often it was started here. `waits`: it is loaded, and
    follows another one.
    """

    group: ShardGroup
    cpus: float
    node_id: str
    host: str
    ip: str
    process: int | None
    starts: int
    said: str
    waits: bool = False


class ShardKeeper:
    """What Ray runs, in an event loop. *Ownership*: it owns the child and the task that keeps it.

    `before`: the name of the keeper whose bot hands its rooms over to this one's. While Ray has that keeper, the bot
    here waits, however often it is started.
    """

    def __init__(self, group: ShardGroup, *, before: str = "") -> None:
        self._group = group
        self._before = before
        self._child: Process | None = None
        self._starts = 0
        self._said = b""
        self._keeping = asyncio.get_running_loop().create_task(self._keep(), name=group.name)
        self._keeping.add_done_callback(_end_if_failed)

    async def report(self) -> KeeperReport:
        """Return how the group is."""
        import ray

        child, here = self._child, ray.get_runtime_context()
        return KeeperReport(
            self._group,
            here.get_assigned_resources().get("CPU", 0.0),  # type: ignore[no-untyped-call]
            here.get_node_id(),
            os.uname().nodename,
            ray.util.get_node_ip_address(),  # type: ignore[no-untyped-call]
            None if child is None or child.returncode is not None else child.pid,
            self._starts,
            last_line(self._said),
            WAITS.encode() in self._said,
        )

    async def hand_over(self) -> None:
        """Let the bot leave its rooms at pauses in speech, and return when it has ended. It is not started again."""
        self._keeping.cancel()
        if (child := self._child) is None or child.returncode is not None:
            return
        child.terminate()
        try:
            async with asyncio.timeout(_END_WITHIN_S):
                await child.wait()
        except TimeoutError:
            child.kill()

    async def _keep(self) -> None:
        failures = 0
        while True:
            began_at = time.monotonic()
            if await self._run() == FENCED_STATUS:
                # Where Ray has replaced this actor, it is over; else Ray starts it again.
                os._exit(FENCED_STATUS)
            failures = 1 if time.monotonic() - began_at >= _STEADY_S else failures + 1
            if failures > 1:
                pause_s = retry_pause_s(failures - 1, first_s=_FIRST_PAUSE_S, longest_s=_LONGEST_PAUSE_S)
                await asyncio.sleep(pause_s)

    async def _run(self) -> int:
        """Run the bot once, and return its exit status."""
        child = self._child = await asyncio.create_subprocess_exec(
            *child_command(self._group, follows=_is_kept(self._before)),
            env={name: value for name, value in os.environ.items() if not name.startswith("RAY_")},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            # Ray kills the process group of an actor that ends, and the bot needs a moment.
            start_new_session=True,
        )
        self._starts += 1
        assert child.stdout is not None, "a pipe"
        while piece := await child.stdout.read(_PIECE_BYTES):
            # Its log is in its data folder; this is what it says when it cannot begin.
            self._said = (self._said + piece)[-_PIECE_BYTES:]
        return await child.wait()


def child_command(group: ShardGroup, *, follows: bool = False) -> list[str]:
    """Return the command line of a group's bot. The kernel sends it SIGTERM when its parent is gone.

    `follows`: it waits until the process before it has ended.
    """
    run = (sys.executable, "-m", "bot", "run", "--shards", str(group.shards), "--kept", str(group.number))
    return ["setpriv", "--pdeathsig", "TERM", *run, *(["--follows"] if follows else [])]


def last_line(said: bytes) -> str:
    """Return the last thing that a bot has said."""
    lines = said.decode("utf-8", "replace").strip().splitlines()
    return lines[-1][:300] if lines else ""


def _is_kept(name: str) -> bool:
    """Return whether Ray has a keeper of this name; empty: none."""
    if not name:
        return False
    import ray

    return name in ray.util.list_named_actors()


def _end_if_failed(keeping: asyncio.Task[None]) -> None:
    """End this process, so that Ray starts the actor anew, if its work has failed."""
    if not keeping.cancelled():
        os._exit(1)
