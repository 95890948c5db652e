"""This machine's part of a cluster: Ray and what runs beside it, from `roomtone cluster up` to its end.

`cluster` has the commands, which read their options and check them first.
"""

from __future__ import annotations

import asyncio
import os
import sys
from contextlib import AsyncExitStack, ExitStack
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from bot.background_task import owned_task
from bot.cli.output import say
from bot.cli.signals import stop_on_signals
from bot.errors import SetupError

if TYPE_CHECKING:
    from collections.abc import Coroutine, Sequence
    from pathlib import Path

    from bot.clock import Clock
    from bot.cluster.node import NodeSettings

T = TypeVar("T")


async def run_node(node: NodeSettings, pool: Sequence[str]) -> int:
    """Run the node until a signal or its end; return the exit status. `pool`: the command of `roomtone cluster` that
    puts recognisers into the cluster; empty: none.
    """
    from bot.clock import SystemClock
    from bot.cluster.node import running_node
    from bot.cluster.running_process import occupied
    from bot.folder_lock import FolderInUseError

    stop, clock = asyncio.Event(), SystemClock()
    with ExitStack() as held:
        try:
            held.enter_context(occupied(node.folder))
        except FolderInUseError as error:
            raise SetupError(
                "This machine is in a cluster already. `roomtone cluster status` shows it; `roomtone cluster down` "
                "ends this machine's part."
            ) from error
        held.enter_context(stop_on_signals(stop, end_at_once=partial(_end_at_once, node.folder)))
        await end_left_ray(node.folder, clock)
        say(f"Starting Ray on {node.ip} …")
        async with AsyncExitStack() as running:
            ended = await _unless_stopped(stop, running.enter_async_context(running_node(node)))
            if ended is not None:
                return await _serve(node, pool, stop, ended)
    return 0


async def end_left_ray(folder: Path, clock: Clock) -> None:
    """End the Ray of a `cluster up` that is gone, and say so."""
    from bot.cluster.ray_process import end_ray, ray_process

    if ray_process(folder) is not None:
        say("An earlier `roomtone cluster up` was killed and has left Ray running. Ending that …")
        await end_ray(folder, clock)


async def _serve(node: NodeSettings, pool: Sequence[str], stop: asyncio.Event, ended: asyncio.Task[int]) -> int:
    """Put into the cluster what belongs there, and wait. Returns 0 after `stop`, and another status if a command has
    failed or Ray has `ended`.
    """
    if pool and (failed := await _unless_stopped(stop, _run_command(pool))):
        return failed
    if node.is_alone and not stop.is_set():
        say("No other machine reaches this one. Begin again with --ip and an address that they reach, so that they can")
        say("join: docs/cluster.md says how.")
    elif not node.join and not stop.is_set():
        say(f"Another machine joins with `roomtone cluster up --join {node.address} --ip ITS-ADDRESS`, after")
        say(f"{node.folder / 'token'} was copied there.")
    if node.join and not stop.is_set():
        say(f"This machine is in the cluster of {node.join}. `roomtone cluster status` shows all machines.")
    if stop.is_set():
        return 0
    say("Ctrl-C ends it.")
    if await _unless_stopped(stop, _status_of(ended)) is None:
        return 0
    say(f"Ray has ended by itself. {node.folder / 'ray.log'} has its last words.")
    return 1


def _end_at_once(folder: Path, status: int) -> None:
    """End this process and Ray at the second signal."""
    from bot.cluster.ray_process import kill_ray

    kill_ray(folder)
    os._exit(status)


async def _run_command(words: Sequence[str]) -> int:
    """Run a command of `roomtone cluster` and return its exit status: Ray must not get hold of this process
    (`connected`).
    """
    child = await asyncio.create_subprocess_exec(sys.executable, "-m", "bot", "cluster", *words)
    try:
        return await child.wait()
    finally:
        if child.returncode is None:
            # It may wait in a thread for Ray, which is about to end: nothing is lost with it.
            child.kill()
            await child.wait()


async def _status_of(ended: asyncio.Task[int]) -> int:
    """Wait for the end of Ray, which goes on if this is cancelled."""
    return await asyncio.shield(ended)


async def _unless_stopped(stop: asyncio.Event, work: Coroutine[object, object, T]) -> T | None:
    """Return the result of `work`. Return None if it was told to stop: `work` was cancelled, and has ended.

    *Ownership*: its task has ended when this returns.
    """
    async with (
        owned_task(stop.wait(), name="until-stopped") as stopped,
        owned_task(work, name="unless-stopped") as run,
    ):
        await asyncio.wait({run, stopped}, return_when=asyncio.FIRST_COMPLETED)
        if not stop.is_set():
            return run.result()
        say("Ending Ray …")
        return None
