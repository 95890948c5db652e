"""`roomtone cluster`: recognisers on several machines, through Ray."""

from __future__ import annotations

import asyncio
import os
import re
import signal
from typing import TYPE_CHECKING, Annotated

import typer

from bot.cli.cluster_node import end_left_ray, run_node
from bot.cli.environment import cluster_folder, logging_from_settings
from bot.cli.output import count, say
from bot.cli.signals import until_stopped
from bot.errors import SetupError
from config.load import load

if TYPE_CHECKING:
    from bot.cluster.pool_settings import PoolSettings
    from bot.cluster.state import ClusterState

_RANGE = re.compile(r"(\d+)(?:-(\d+))?")

app = typer.Typer(
    name="cluster",
    help="Recognise speech on several machines.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)


# What the options say that `up` and `scale` have.
_CPUS = "CPUs that each recogniser reserves."
_GPUS = "GPUs that each recogniser reserves; 0.25 lets four share one."
_BATCH = "How many utterances of like length a recogniser takes at once; 0: 8 with a GPU, else 1."
_KEPT = " Default: as the recognisers have it now."
# What `up` puts into a cluster that it begins.
_FIRST_POOL = ("1", 1.0, 0.0, 0)


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
) -> None:
    """Make this machine a part of a cluster until Ctrl-C. On the first machine, start recognisers too."""
    from bot.cluster.node import NodeSettings

    settings = load()
    join = checked_addresses(ip, join)
    if join and (recognisers, cpus, gpus, batch) != _FIRST_POOL:
        raise SetupError(
            "--recognisers, --cpus, --gpus and --batch are for the first machine. In a cluster that is there, "
            "`roomtone cluster scale` changes them on any machine."
        )
    node = NodeSettings(cluster_folder(settings), ip=ip, join=join)
    pool_settings(recognisers, cpus=cpus, gpus=gpus, batch=batch)  # refused before anything is started
    reserved = ("--cpus", str(cpus), "--gpus", str(gpus))
    pool = [] if join else ["scale", recognisers, *reserved, "--batch", str(batch)]
    with logging_from_settings(settings, wordless=True):
        status = asyncio.run(run_node(node, pool))
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
    from bot.cluster.deployment import RecogniserModels, deploy, deployed_pool
    from bot.models.text_end_reader import text_end_folder

    settings = load()
    pool_settings(recognisers)  # refused before the cluster is asked
    models = RecogniserModels(settings.asr, text_end_folder(settings.models, settings.asr, settings.listening))

    async def change() -> tuple[PoolSettings, list[str]]:
        async with connected(cluster_folder(settings)):
            # With all of them given, what is there does not matter, and need not be readable.
            there = await deployed_pool() if None in (cpus, gpus, batch) else None
            pool = pool_settings(recognisers, cpus=cpus, gpus=gpus, batch=batch, there=there)
            return pool, await deploy(pool, models)

    pool, left_out = asyncio.run(until_stopped(change()))
    least = "" if pool.least == pool.most else f"{pool.least} to "
    say(f"The cluster keeps {least}{count(pool.most, 'recogniser')}. Each reserves {pool.reserved}.")
    if left_out:
        say(
            f"Bots on {', '.join(left_out)} do not reach them yet, and hear by themselves. Does another program there "
            f"use port {POOL_PORT}?"
        )
    say("On this machine: `roomtone run --cluster auto`.")


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
    """Let a machine leave while people speak. Its recognisers go on elsewhere, one by one."""
    from bot.cluster.address import connected
    from bot.cluster.draining import drain as drain_node

    async def leave() -> bool:
        async with connected(cluster_folder(load())):
            return await drain_node(ip)

    if not asyncio.run(until_stopped(leave())):
        say(f"{ip} still has recognisers, which is longer than they need. `roomtone cluster down` there ends them.")
        raise typer.Exit(1)
    say(f"{ip} has no recognisers any more. `roomtone cluster down` there ends its part.")


@app.command()
def down() -> None:
    """End this machine's part of the cluster. On the first machine this ends the cluster; bots hear by themselves."""
    from bot.clock import SystemClock
    from bot.cluster.ray_process import ray_process
    from bot.cluster.running_process import running_process

    settings = load()
    folder = cluster_folder(settings)
    if (process := running_process(folder)) is not None:
        os.kill(process, signal.SIGTERM)
        say("Asked `roomtone cluster up` to end: recognisers finish what they have begun.")
        return
    if ray_process(folder) is None:
        say("This machine is in no cluster.")
        return
    with logging_from_settings(settings, wordless=True):
        asyncio.run(until_stopped(end_left_ray(folder, SystemClock())))


def checked_addresses(ip: str, join: str) -> str:
    """Return the first machine's address as Ray takes it, or nothing if this is the first one. Raises `SetupError` for
    addresses that cannot be meant: Ray would try them for two minutes.
    """
    from bot.cluster.joining import check_own_ip
    from bot.network_address import NetworkAddress

    check_own_ip(ip)
    try:
        return str(NetworkAddress.parsed(join)) if join else ""
    except ValueError as error:
        raise SetupError(
            f"{join!r} is not an address. Give --join the first machine's as HOST:PORT, for example 10.0.0.1:6379."
        ) from error


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
        raise SetupError(f"{recognisers!r} is not a number of recognisers. Give them as MIN-MAX, for example 1-4.")
    least = int(match[1])
    before = there or PoolSettings()
    return PoolSettings(
        least=least,
        most=int(match[2] or least),
        cpus=before.cpus if cpus is None else cpus,
        gpus=before.gpus if gpus is None else gpus,
        batch=before.batch if batch is None else batch,
    )
