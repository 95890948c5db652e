"""`roomtone cluster`: recognisers on several machines, through Ray, and rooms on other machines."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import socket
import sys
from contextlib import AsyncExitStack, ExitStack
from dataclasses import replace
from functools import partial
from ipaddress import ip_address
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from bot.cli.cluster_rooms import HANDED_OVER, Cluster, Most, RoomsEach, Waiting, check_rooms, rooms_pool
from bot.cli.cluster_rooms import command as rooms
from bot.cli.environment import cluster_folder, logging_from_settings
from bot.cli.output import say
from bot.cli.signals import stop_on_signals, until_stopped
from bot.cluster.room_offer import PROCESSES, RoomOffer, workers_count
from bot.errors import SetupError
from config.load import load

if TYPE_CHECKING:
    from collections.abc import Coroutine, Sequence
    from pathlib import Path

    from bot.clock import Clock
    from bot.cluster.node import NodeSettings
    from bot.cluster.pool_settings import PoolSettings
    from bot.cluster.state import ClusterState

T = TypeVar("T")

# After the loss of the first machine's Ray, that of the others ends within a minute, and systemd starts it again.
# Workers that are asked for earlier would all come to the first machine, and the rooms of the others would follow.
OTHERS_BACK_S = 120.0
_RANGE = re.compile(r"(\d+)(?:-(\d+))?")

app = typer.Typer(
    name="cluster",
    help="Recognise speech, and run rooms, on several machines.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("rooms")(rooms)


# What the options say that `up` and `scale` have.
_CPUS = "CPUs that each recogniser reserves."
_GPUS = "GPUs that each recogniser reserves; 0.25 lets four share one."
_BATCH = "How many utterances of like length a recogniser takes at once; 0: 8 with a GPU, else 1."
_KEPT = " Default: as the recognisers have it now."


@app.command()
def up(
    join: Annotated[
        str,
        typer.Option(metavar="HOST:PORT", help="Join the cluster whose first machine is there. Default: begin one."),
    ] = "",
    ip: Annotated[
        str,
        typer.Option(help="The address at which the other machines reach this one. Never one that the internet sees."),
    ] = "127.0.0.1",
    recognisers: Annotated[
        str, typer.Option(metavar="MIN-MAX", help="How many recognisers there are at least and at most.")
    ] = "1",
    cpus: Annotated[float, typer.Option(help=_CPUS)] = 1.0,
    gpus: Annotated[float, typer.Option(help=_GPUS)] = 0.0,
    batch: Annotated[int, typer.Option(min=0, help=_BATCH)] = 0,
    workers: Annotated[
        int,
        typer.Option(
            min=0,
            help="How many room workers there are. They, and the options below, are those of `roomtone cluster rooms`.",
        ),
    ] = 0,
    gateway: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="With --workers: where the bot listens for rooms.")
    ] = "",
    most: Most = PROCESSES,
    waiting: Waiting = 1,
    rooms_each: RoomsEach = 1,
    cluster: Cluster = None,
    worker_cpus: Annotated[float, typer.Option(help="CPUs that each room worker reserves.")] = 1.0,
    worker_gpus: Annotated[float, typer.Option(help="GPUs that each room worker reserves.")] = 0.0,
) -> None:
    """Make this machine a part of a cluster until Ctrl-C. On the first machine, start recognisers and rooms too."""
    from bot.cluster.node import NodeSettings, make_token

    settings = load()
    check_own_addresses(ip, join)
    node = NodeSettings(cluster_folder(settings), ip=ip, join=join)
    pool_settings(recognisers, cpus=cpus, gpus=gpus, batch=batch)  # refused before anything is started
    if bool(workers) != bool(gateway):
        raise SetupError("--workers and --gateway belong together: how many room workers, and where the bot is.")
    offer = RoomOffer(gateway, most, rooms_each, cluster, waiting=waiting, cpus=worker_cpus, gpus=worker_gpus)
    asked: list[str] = []
    if workers:
        if not join:
            make_token(node.folder)
        check_rooms(settings, gateway, socket.gethostname())
        offer = replace(offer, cluster=rooms_pool(settings, cluster, placed=True))
        asked = offer.asking(workers_count(workers))
    elif offer != RoomOffer(""):
        raise SetupError("--rooms, --waiting, --rooms-each, --cluster and --worker-… are for --workers: give how many.")
    reserved = ("--cpus", str(cpus), "--gpus", str(gpus))
    pool = [] if join else ["scale", recognisers, *reserved, "--batch", str(batch)]
    with logging_from_settings(settings, wordless=True):
        status = asyncio.run(_up(node, pool, asked))
    raise typer.Exit(status)


@app.command()
def scale(
    recognisers: Annotated[str, typer.Argument(metavar="MIN-MAX", help="How many there are at least and at most.")],
    cpus: Annotated[float | None, typer.Option(help=f"{_CPUS}{_KEPT}")] = None,
    gpus: Annotated[float | None, typer.Option(help=f"{_GPUS}{_KEPT}")] = None,
    batch: Annotated[int | None, typer.Option(min=0, help=f"{_BATCH}{_KEPT}")] = None,
) -> None:
    """Start the cluster's recognisers, or change how many there are. Speech is heard meanwhile."""
    from bot.cluster.address import POOL_PORT, connected
    from bot.cluster.deployment import deploy, deployed_pool

    settings = load()
    pool_settings(recognisers)  # refused before the cluster is asked

    async def change() -> tuple[PoolSettings, list[str]]:
        async with connected(cluster_folder(settings)):
            # With all of them given, what is there does not matter, and need not be readable.
            there = await deployed_pool() if None in (cpus, gpus, batch) else None
            pool = pool_settings(recognisers, cpus=cpus, gpus=gpus, batch=batch, there=there)
            return pool, await deploy(pool, settings.asr)

    pool, left_out = asyncio.run(until_stopped(change()))
    say(f"The cluster keeps {pool.least} to {pool.most} recognisers. Each reserves {pool.reserved}.")
    if left_out:
        say(
            f"Bots on {', '.join(left_out)} do not reach them yet, and hear by themselves. Does another program there "
            f"use port {POOL_PORT}?"
        )
    say("On this machine: `roomtone run --cluster auto`.")


@app.command()
def status() -> None:
    """Show the cluster's machines, recognisers and room workers."""
    from bot.cluster.address import connected
    from bot.cluster.state import cluster_state

    async def read() -> ClusterState:
        async with connected(cluster_folder(load())):
            return await cluster_state()

    for line in asyncio.run(until_stopped(read())).lines():
        say(line)


@app.command()
def drain(
    ip: Annotated[
        str, typer.Argument(metavar="IP", help="The machine's address, as `roomtone cluster status` shows it.")
    ],
) -> None:
    """Let a machine leave while people speak. Its rooms and recognisers go on elsewhere, process by process."""
    from bot.cluster.address import connected
    from bot.cluster.draining import Departure
    from bot.cluster.draining import drain as drain_node

    async def leave() -> Departure:
        async with connected(cluster_folder(load())):
            return await drain_node(ip)

    departure = asyncio.run(until_stopped(leave()))
    for line in departure.lines(ip):
        say(line)
    if not departure.complete:
        raise typer.Exit(1)


@app.command()
def down() -> None:
    """End this machine's part of the cluster. On the first machine this ends the cluster; bots hear by themselves."""
    from bot.cluster.left_behind import workers_in_use
    from bot.cluster.ray_process import ray_process
    from bot.cluster.running_process import running_process

    settings = load()
    folder = cluster_folder(settings)
    if (process := running_process(folder)) is not None:
        os.kill(process, signal.SIGTERM)
        say("Asked `roomtone cluster up` to end: recognisers finish what they have begun, rooms go on elsewhere.")
        return
    if ray_process(folder) is None and not workers_in_use(folder):
        say("This machine is in no cluster.")
        return
    with logging_from_settings(settings, wordless=True):
        asyncio.run(until_stopped(_end_rest(folder)))


def check_own_addresses(ip: str, join: str) -> None:
    """Raise `SetupError` for addresses of another form: Ray would try them for two minutes."""
    from bot.remote.link.address import RoomsAddress

    try:
        ip_address(ip)
    except ValueError as error:
        raise SetupError(
            f"{ip!r} is not an IP address. Give --ip the one at which the other machines reach this one, for example "
            "10.0.0.1."
        ) from error
    if join:
        RoomsAddress.parsed(join)


def pool_settings(
    recognisers: str,
    *,
    cpus: float | None = None,
    gpus: float | None = None,
    batch: int | None = None,
    there: PoolSettings | None = None,
) -> PoolSettings:
    """Return the pool of the command line. What is None stays as in the pool that is there, or in `PoolSettings`.

    Raises `SetupError` for numbers that make none.
    """
    from bot.cluster.pool_settings import PoolSettings

    match = _RANGE.fullmatch(recognisers.strip())
    if match is None:
        raise SetupError(
            f"{recognisers!r} is not a number of recognisers. Give --recognisers as MIN-MAX, for example 1-4."
        )
    least = int(match[1])
    before = there or PoolSettings()
    return PoolSettings(
        least=least,
        most=int(match[2] or least),
        cpus=before.cpus if cpus is None else cpus,
        gpus=before.gpus if gpus is None else gpus,
        batch=before.batch if batch is None else batch,
    )


async def _end_rest(folder: Path) -> None:
    """End what a `cluster up` that is gone has left on this machine: Ray, and then rooms."""
    from bot.clock import SystemClock
    from bot.cluster.left_behind import hand_over_workers, workers_in_use

    clock = SystemClock()
    await _end_left_ray(folder, clock)
    if workers_in_use(folder):
        say("This machine is in no cluster, but still runs rooms. Handing them over …")
        await hand_over_workers(folder, clock)
        say(HANDED_OVER)


async def _end_left_ray(folder: Path, clock: Clock) -> None:
    """End the Ray of a `cluster up` that is gone, and say so."""
    from bot.cluster.ray_process import end_ray, ray_process

    if ray_process(folder) is not None:
        say("An earlier `roomtone cluster up` was killed and has left Ray running. Ending that …")
        await end_ray(folder, clock)


async def _up(node: NodeSettings, pool: Sequence[str], workers: Sequence[str]) -> int:
    """Run the node until a signal or its end; return the exit status. `pool`, `workers`: the commands of `roomtone
    cluster` that put recognisers and room workers into the cluster; empty: none.
    """
    from bot.background_task import background_task
    from bot.clock import SystemClock
    from bot.cluster.left_behind import end_left_behind, hand_over_workers, workers_in_use
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
        await _end_left_ray(node.folder, clock)
        say(f"Starting Ray on {node.ip} …")
        async with AsyncExitStack() as running:
            ended = await _unless_stopped(stop, running.enter_async_context(running_node(node)))
            if ended is not None:
                left_behind = background_task(end_left_behind(node.folder, clock), name="left-behind")
                await running.enter_async_context(left_behind)
                if failed := await _serve(node, pool, workers, stop, ended):
                    return failed
        if workers_in_use(node.folder):
            say("Handing rooms over …")
            await hand_over_workers(node.folder, clock)
            say(HANDED_OVER)
    return 0


async def _serve(
    node: NodeSettings, pool: Sequence[str], workers: Sequence[str], stop: asyncio.Event, ended: asyncio.Task[int]
) -> int:
    """Put into the cluster what belongs there, and wait. Returns 0 after `stop`, and another status if a command has
    failed or Ray has `ended`.
    """
    from bot.cluster.left_behind import workers_in_use

    others_back_at = asyncio.get_running_loop().time() + OTHERS_BACK_S
    if pool and (failed := await _unless_stopped(stop, _run_command(pool))):
        return failed
    if not node.join and not stop.is_set():
        say(f"Another machine joins with `roomtone cluster up --join {node.address} --ip ITS-ADDRESS`, after")
        say(f"{node.folder / 'token'} was copied there.")
    if (
        workers
        and not stop.is_set()
        and (failed := await _unless_stopped(stop, _ask(node, workers, ended, others_back_at)))
    ):
        return failed
    if stop.is_set():
        return 0
    say("Ctrl-C ends it.")
    if await _unless_stopped(stop, _status_of(ended)) is None:
        return 0
    say(f"Ray has ended by itself. {node.folder / 'ray.log'} has its last words.")
    if workers_in_use(node.folder):
        say("The rooms on this machine go on. `roomtone cluster up` takes them back; `down` ends them.")
    return 1


async def _ask(node: NodeSettings, workers: Sequence[str], ended: asyncio.Task[int], others_back_at: float) -> int:
    """Ask for room workers once the other machines had time to come back, which is in seconds of the event loop; return
    the command's exit status, and 0 if Ray has `ended` before.
    """
    wait_s = others_back_at - asyncio.get_running_loop().time()
    if wait_s > 0 and not ip_address(node.ip).is_loopback:
        say(f"Room workers are asked for in {wait_s:.0f} s, when other machines had time to come back.")
        await asyncio.wait({ended}, timeout=wait_s)
    return 0 if ended.done() else await _run_command(workers)


def _end_at_once(folder: Path, status: int) -> None:
    """End this process and Ray at the second signal, and say what becomes of the rooms."""
    from bot.cluster.left_behind import workers_in_use
    from bot.cluster.ray_process import kill_ray

    kill_ray(folder)
    if workers_in_use(folder):
        say("Told twice: ended at once. The rooms on this machine go on: `roomtone cluster down` hands them over.")
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
    run = asyncio.create_task(work, name="unless-stopped")
    stopped = asyncio.create_task(stop.wait(), name="until-stopped")
    try:
        await asyncio.wait({run, stopped}, return_when=asyncio.FIRST_COMPLETED)
        if not stop.is_set():
            return run.result()
        say("Ending Ray …")
        return None
    finally:
        for each in (run, stopped):
            each.cancel()
        # A failure no longer matters to who stops: it is taken, and asyncio does not report it.
        await asyncio.gather(run, stopped, return_exceptions=True)
