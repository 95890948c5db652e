"""`roomtone cluster rooms`: rooms of a bot on this machine, or on those of a cluster; and its options, for `up` too."""

from __future__ import annotations

import asyncio
import socket
from contextlib import ExitStack, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from bot.cli.environment import cluster_folder
from bot.cli.output import say
from bot.cli.signals import stop_on_signals, until_stopped
from bot.cluster.room_offer import NO_POOL, PROCESSES, RoomOffer, workers_count
from bot.errors import SetupError
from config.load import load

if TYPE_CHECKING:
    from bot.cluster.worker_folder import OfferedProcesses
    from config.schema import Settings

HANDED_OVER = "All rooms are handed over."
NO_SPEECH = (
    "What people say is not written into this machine's log, although logs.speech is on: /forget-me would not reach "
    "it there. To debug, let the room run on the bot's own machine."
)

Most = Annotated[
    int, typer.Option("--rooms", min=1, help="How many processes there are at most, those that wait included.")
]
Waiting = Annotated[
    int,
    typer.Option(
        min=1, help="How many loaded processes wait, so that as many rooms that lost their machine go on at once."
    ),
]
RoomsEach = Annotated[
    int, typer.Option(min=1, help="How many rooms share one process and its loaded models, as in `roomtone run`.")
]
Cluster = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="Whose recognisers the rooms use, as in `roomtone run`; none: only their own. Default: auto with "
        "--workers, or where `roomtone cluster up` runs; else none.",
    ),
]


def command(
    gateway: Annotated[
        str,
        typer.Option(metavar="HOST:PORT", help="Where the bot listens: --rooms-listen of its `roomtone run`."),
    ],
    most: Most = PROCESSES,
    waiting: Waiting = 1,
    rooms_each: RoomsEach = 1,
    cluster: Cluster = None,
    name: Annotated[
        str, typer.Option(help="Without --workers: what the bot's log calls this machine. Default: its own name.")
    ] = "",
    workers: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Let the cluster do this with so many workers, wherever it has room, and start each anew when it or "
            "its machine fails. 0 ends them all. Without it, this machine alone does it.",
        ),
    ] = None,
    cpus: Annotated[float, typer.Option(help="With --workers: CPUs that each reserves.")] = 1.0,
    gpus: Annotated[float, typer.Option(help="With --workers: GPUs that each reserves.")] = 0.0,
    worker: Annotated[str, typer.Option(hidden=True, help="The worker that this process is, as its actor says.")] = "",
) -> None:
    """Run rooms of a bot on other machines. On this one until Ctrl-C, or on those of a cluster with --workers."""
    if workers is None and (cpus, gpus) != (1.0, 0.0):
        raise SetupError("--cpus and --gpus are what each room worker reserves: give --workers, how many there are.")
    if workers is not None and name:
        raise SetupError(
            "--name is for rooms on this machine alone. With --workers, the bot's log has each machine's own name."
        )
    settings, name = load(), name or socket.gethostname()
    check_rooms(settings, gateway, name)
    pool = rooms_pool(settings, cluster, placed=workers is not None)
    if workers is not None:
        offer = RoomOffer(gateway, most, rooms_each, pool, waiting=waiting, cpus=cpus, gpus=gpus)
        asyncio.run(until_stopped(_set_workers(settings, offer, workers_count(workers))))
        return
    offer = RoomOffer(gateway, most, rooms_each, pool, waiting=waiting)
    asyncio.run(_rooms(settings, offer, name, worker))


def rooms_pool(settings: Settings, cluster: str | None, *, placed: bool) -> str | None:
    """Return whose recognisers the rooms use, as in `roomtone run`. `cluster`: what the operator has said. `placed`:
    Ray chooses the machines, which then are part of its cluster. Raises `SetupError` for no address, and without a
    token.
    """
    from bot.cli.run import pool_of
    from bot.cluster.address import HERE
    from bot.cluster.running_process import running_process

    if cluster is None:
        return HERE if placed or running_process(cluster_folder(settings)) is not None else None
    if cluster == NO_POOL:
        return None
    pool_of(settings, cluster)
    return cluster


def check_rooms(settings: Settings, gateway: str, name: str) -> None:
    """Raise `SetupError` for what rooms on other machines need, before a process has loaded for seconds."""
    from bot.cluster.address import read_token
    from bot.remote.link.address import RoomsAddress
    from bot.remote.link.hello import is_machine_name

    address = RoomsAddress.parsed(gateway)
    if address.is_everywhere:
        raise SetupError(
            f"No other machine is reached at {address.host}. Give --gateway an address of the bot's machine "
            f"(`ip address` there shows them), for example 10.0.0.1:{address.port}."
        )
    if not is_machine_name(name):
        raise SetupError(
            f"{name!r} is not the name of a machine. Give --name up to 64 letters, digits, dots and hyphens."
        )
    if settings.storage.database_url is None:
        raise SetupError(
            "Rooms on other machines need PostgreSQL: the same database as the bot's. Set ROOMTONE_DATABASE_URL as on "
            "the bot's machine (docs/cluster.md)."
        )
    read_token(cluster_folder(settings))


async def _set_workers(settings: Settings, offer: RoomOffer, count: int) -> None:
    """Have so many room workers for this bot in the cluster, and say how they are."""
    from bot.cluster.address import connected
    from bot.cluster.workers import set_workers, worker_states

    async with connected(cluster_folder(settings)):
        await set_workers(offer, count)
        states = await worker_states(offer.gateway)
    for state in states:
        say(state.line())
    waiting = sum(not state.node_id for state in states)
    if waiting:
        say(f"A machine needs {offer.needs} free for one more worker. Add one with `roomtone cluster up --join`.")
    say(f"Room workers: {len(states) - waiting} of {count}.")


async def _rooms(settings: Settings, offer: RoomOffer, name: str, worker: str) -> None:
    """Offer processes to the bot until a signal. `worker`: the one in the cluster that this process is; or empty."""
    from bot.background_task import background_task
    from bot.cli.environment import logging_from_settings
    from bot.cli.room_start import room_command
    from bot.clock import SystemClock
    from bot.cluster.worker_folder import worker_folder
    from bot.cluster.worker_output import keep_output_short
    from bot.logs.retention import keep_log_lines
    from bot.remote.link.address import RoomsAddress
    from bot.remote.processes.room_machine import RoomMachine

    address = RoomsAddress.parsed(offer.gateway)
    stop, clock = asyncio.Event(), SystemClock()
    folder = worker_folder(cluster_folder(settings), worker) if worker else None
    with ExitStack() as held:
        logs = held.enter_context(logging_from_settings(settings, wordless=True))
        held.enter_context(stop_on_signals(stop))
        processes = "one process" if offer.processes == 1 else f"at most {offer.processes} processes"
        say(f"Offering {processes} to the bot at {offer.gateway}, as {name}.")
        say("Ctrl-C hands their rooms over.")
        if settings.logs.speech:
            say(NO_SPEECH)
        command = partial(
            room_command, offer.cluster, address.url(), machine=name, rooms_each=offer.rooms_each, elsewhere=True
        )
        tell = _nobody_asks if folder is None else folder.write_processes
        machine = RoomMachine(command, clock, most=offer.processes, waiting=offer.waiting, tell=tell)
        short = folder and background_task(keep_output_short(folder.output, clock), name="worker-output")
        kept = keep_log_lines(logs.path.parent, settings.tiers.retention_days, clock)
        async with background_task(kept, name="log-retention"), short or nullcontext():
            await machine.run(stop)
        say(HANDED_OVER)


def _nobody_asks(_: OfferedProcesses) -> None:
    """Tell nobody about the processes."""
