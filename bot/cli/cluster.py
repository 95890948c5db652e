"""`roomtone cluster`: recognisers on several machines, through Ray, and rooms on other machines."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import socket
import sys
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from bot.cli.environment import cluster_folder
from bot.cli.output import say
from bot.cli.signals import stop_on_signals, until_stopped
from bot.errors import SetupError
from config.load import load

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from bot.cluster.node import NodeSettings
    from bot.cluster.pool_settings import PoolSettings
    from bot.cluster.state import ClusterState
    from config.schema import Settings

# In the cluster's folder: the process of `cluster up`.
PROCESS_FILE = "up.pid"
_RANGE = re.compile(r"(\d+)(?:-(\d+))?")

app = typer.Typer(
    name="cluster",
    help="Recognise speech, and run rooms, on several machines.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)


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
    cpus: Annotated[float, typer.Option(help="CPUs that each recogniser reserves.")] = 1.0,
    gpus: Annotated[float, typer.Option(help="GPUs that each recogniser reserves; 0.25 lets four share one.")] = 0.0,
) -> None:
    """Make this machine a part of a cluster until Ctrl-C; on the first machine, start the recognisers too."""
    from bot.cluster.node import NodeSettings

    node = NodeSettings(cluster_folder(load()), ip=ip, join=join)
    pool_settings(recognisers, cpus=cpus, gpus=gpus)  # refused before anything is started
    wanted = () if join else (recognisers, "--cpus", str(cpus), "--gpus", str(gpus))
    raise typer.Exit(asyncio.run(_up(node, wanted)))


@app.command()
def scale(
    recognisers: Annotated[str, typer.Argument(metavar="MIN-MAX", help="How many there are at least and at most.")],
    cpus: Annotated[float, typer.Option(help="CPUs that each recogniser reserves.")] = 1.0,
    gpus: Annotated[float, typer.Option(help="GPUs that each recogniser reserves; 0.25 lets four share one.")] = 0.0,
) -> None:
    """Start the cluster's recognisers, or change how many there are. Speech is heard meanwhile."""
    from bot.cluster.address import connected, read_token
    from bot.cluster.deployment import deploy

    settings = load()
    pool = pool_settings(recognisers, cpus=cpus, gpus=gpus)

    async def change() -> None:
        folder = cluster_folder(settings)
        async with connected(folder):
            await deploy(pool, settings.asr, read_token(folder))

    asyncio.run(until_stopped(change()))
    say(f"Recognisers that hear: {pool.least} of at most {pool.most}. On this machine: `roomtone run --cluster auto`.")


@app.command()
def status() -> None:
    """Show the cluster's machines and recognisers."""
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
    """Let a machine leave while speech is heard: its recognisers start elsewhere, finish what they have, and end."""
    from bot.cluster.address import connected
    from bot.cluster.draining import drain as drain_node

    async def leave() -> bool:
        async with connected(cluster_folder(load())):
            return await drain_node(ip)

    if asyncio.run(until_stopped(leave())):
        say(f"{ip} has no recognisers any more. `roomtone cluster down` there ends its part.")
        return
    say(f"{ip} still has recognisers, which is longer than they need. `roomtone cluster down` there ends them.")
    raise typer.Exit(1)


@app.command()
def down() -> None:
    """End this machine's part of the cluster. On the first machine this ends the cluster; bots hear by themselves."""
    process = running_process(cluster_folder(load()))
    if process is None:
        say("This machine is in no cluster.")
        return
    os.kill(process, signal.SIGTERM)
    say("Asked `roomtone cluster up` to end: the recognisers finish what they have begun.")


@app.command()
def rooms(
    gateway: Annotated[
        str,
        typer.Option(metavar="HOST:PORT", help="Where the bot listens: --rooms-listen of its `roomtone run`."),
    ],
    most: Annotated[
        int, typer.Option("--rooms", min=1, help="How many processes there are at most; one of them waits for a room.")
    ] = 4,
    rooms_each: Annotated[
        int, typer.Option(min=1, help="How many rooms share one process and its loaded models, as in `roomtone run`.")
    ] = 1,
    cluster: Annotated[str | None, typer.Option(metavar="ADDRESS", help="As in `roomtone run`.")] = None,
    name: Annotated[
        str, typer.Option(help="What the bot's log calls this machine. Default: the machine's own name.")
    ] = "",
) -> None:
    """Run rooms of a bot on another machine, until Ctrl-C; then hand them over, one after the other."""
    asyncio.run(_rooms(load(), gateway, most, rooms_each, cluster, name or socket.gethostname()))


def pool_settings(recognisers: str, *, cpus: float, gpus: float) -> PoolSettings:
    """Return the pool of the command line. Raises `SetupError` for numbers that make none."""
    from bot.cluster.pool_settings import PoolSettings

    match = _RANGE.fullmatch(recognisers.strip())
    if match is None:
        raise SetupError(
            f"{recognisers!r} is no number of recognisers. Give --recognisers as MIN-MAX, for example 1-4."
        )
    least = int(match[1])
    return PoolSettings(least=least, most=int(match[2] or least), cpus=cpus, gpus=gpus)


def running_process(folder: Path) -> int | None:
    """Return the process of `cluster up` on this machine; None if none runs."""
    from bot.folder_lock import FolderInUseError, folder_lock

    if not folder.is_dir():
        return None
    try:
        with folder_lock(folder):
            return None
    except FolderInUseError:
        # Only the process that has the lock writes this file.
        return int((folder / PROCESS_FILE).read_text(encoding="ascii"))


async def _up(node: NodeSettings, wanted: Sequence[str]) -> int:
    """Run the node until a signal or its end; return the exit status. `wanted`: the words of `scale`, or none."""
    from bot.cluster.node import running_node
    from bot.folder_lock import FolderInUseError, folder_lock
    from bot.private_files import write_private_text

    stop = asyncio.Event()
    with ExitStack() as held:
        try:
            held.enter_context(folder_lock(node.folder))
        except FolderInUseError as error:
            raise SetupError(
                "This machine is in a cluster already. `roomtone cluster status` shows it; `roomtone cluster down` "
                "ends this machine's part."
            ) from error
        held.enter_context(stop_on_signals(stop))
        write_private_text(node.folder / PROCESS_FILE, str(os.getpid()))
        say(f"Starting Ray on {node.ip} …")
        async with running_node(node) as ended:
            if wanted and (failed := await _scaled(wanted)):
                return failed
            if not node.join:
                say(f"Another machine joins with `roomtone cluster up --join {node.address} --ip ITS-ADDRESS`, after")
                say(f"{node.folder / 'token'} was copied there.")
            say("Ctrl-C ends it.")
            await _until(stop, ended)
            if not stop.is_set():
                say(f"Ray has ended by itself. {node.folder / 'ray.log'} has its last words.")
                return 1
            say("Ending Ray …")
    return 0


async def _scaled(wanted: Sequence[str]) -> int:
    """Run `roomtone cluster scale` and return its exit status: Ray must not get hold of this process (`connected`)."""
    child = await asyncio.create_subprocess_exec(sys.executable, "-m", "bot", "cluster", "scale", *wanted)
    try:
        return await child.wait()
    finally:
        if child.returncode is None:
            child.terminate()
            await child.wait()


async def _until(stop: asyncio.Event, ended: asyncio.Task[int]) -> None:
    stopped = asyncio.create_task(stop.wait(), name="until-stopped")
    try:
        await asyncio.wait({stopped, ended}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        stopped.cancel()


async def _rooms(settings: Settings, gateway: str, most: int, rooms_each: int, cluster: str | None, name: str) -> None:
    """Offer processes to the bot until a signal."""
    from bot.cli.environment import logging_from_settings
    from bot.cli.room_start import room_command
    from bot.clock import SystemClock
    from bot.cluster.address import read_token
    from bot.remote.address import RoomsAddress
    from bot.remote.hello import is_machine_name
    from bot.remote.room_machine import RoomMachine
    from bot.wiring.room_process import require_server

    address = RoomsAddress.parsed(gateway)
    if not is_machine_name(name):
        raise SetupError(f"{name!r} is no name of a machine. Give --name up to 64 letters, digits, dots and hyphens.")
    require_server(settings.storage)
    # Refused before a process has loaded for seconds.
    read_token(cluster_folder(settings))
    stop = asyncio.Event()
    with logging_from_settings(settings), stop_on_signals(stop):
        say(f"Offering at most {most} processes to the bot at {gateway}, as {name}. Ctrl-C hands their rooms over.")
        command = partial(room_command, cluster, address.url(), machine=name, rooms_each=rooms_each)
        await RoomMachine(command, SystemClock(), most=most).run(stop)
        say("All rooms are handed over.")
