"""`roomtone room`: a process for rooms. Other commands start it; it is no command for people."""

from __future__ import annotations

import asyncio
import os
import sys
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from config.schema import Settings


def command(
    gateway: Annotated[str, typer.Argument(metavar="URL", help="Where the bot listens for its rooms.")],
    run: Annotated[str, typer.Argument(metavar="RUN", help="The number that the bot gave this process.")],
    cluster: Annotated[str | None, typer.Option(metavar="ADDRESS", help="As in `roomtone run`.")] = None,
    machine: Annotated[
        str, typer.Option(metavar="NAME", help="The name of this machine, if the bot runs on another one.")
    ] = "",
    rooms: Annotated[int, typer.Option(min=1, help="How many rooms it runs at once.")] = 1,
    elsewhere: Annotated[
        bool, typer.Option("--elsewhere", help="The bot's rooms may run on other machines, which its notice names.")
    ] = False,
) -> None:
    """Run rooms for `roomtone run --rooms` or `roomtone cluster rooms`, which start this by themselves."""
    from config.load import load

    asyncio.run(_run(load(), gateway, run, cluster, machine, rooms, elsewhere=elsewhere))


async def _run(
    settings: Settings, gateway: str, run: str, cluster: str | None, machine: str, rooms: int, *, elsewhere: bool
) -> None:
    import structlog

    from bot.cli.environment import cluster_folder, logging_from_settings
    from bot.cli.failures import defects_logged
    from bot.cli.run import STOP_WITHIN_S, pool_of
    from bot.cli.signals import stop_on_signals
    from bot.cluster.address import read_token
    from bot.local_zone import LocalZone
    from bot.remote.link.link_file import link_file, read_link
    from bot.wiring.room_process import GatewayAddress, run_room_process
    from bot.wiring.settings import BotSettings

    parts = BotSettings.from_schema(settings)
    stop = asyncio.Event()
    with (
        logging_from_settings(settings, wordless=bool(machine)) as logs,
        defects_logged(),
        stop_on_signals(stop, within_s=STOP_WITHIN_S),
        _stop_without_parent(stop, watches=bool(machine)),
    ):
        find_again = None if machine else partial(read_link, link_file(settings.storage.data_dir))
        token = read_token(cluster_folder(settings)) if find_again is None else find_again().token
        reason = await run_room_process(
            parts,
            GatewayAddress(gateway, token, run, machine, elsewhere, find_again),
            stop=stop,
            zone=LocalZone(),
            pool=pool_of(settings, cluster),
            rooms=rooms,
            tell=_tell_parent if machine else lambda _: None,
            logs=logs,
        )
        structlog.get_logger().info("room_process_ended", reason=reason)


def _tell_parent(word: str) -> None:
    """Say a word to `roomtone cluster rooms`, if it is still there."""
    with suppress(OSError):
        sys.stdout.write(f"{word}\n")
        sys.stdout.flush()


@contextmanager
def _stop_without_parent(stop: asyncio.Event, *, watches: bool) -> Iterator[None]:
    """Set `stop` once `roomtone cluster rooms` is gone, which holds the other end of standard input: nobody could drain
    this process any more.
    """
    if not watches:
        yield
        return
    loop, source = asyncio.get_running_loop(), sys.stdin.fileno()

    def on_input() -> None:
        if not os.read(source, 1024):
            loop.remove_reader(source)
            stop.set()

    loop.add_reader(source, on_input)
    try:
        yield
    finally:
        loop.remove_reader(source)
