"""`roomtone room`: the process of one room. `roomtone run --rooms` starts it; it is no command for people."""

from __future__ import annotations

import asyncio
from dataclasses import fields
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from config.schema import Settings


def command(
    gateway: Annotated[str, typer.Argument(metavar="URL", help="Where the bot listens for its rooms.")],
    run: Annotated[str, typer.Argument(metavar="RUN", help="The number that the bot gave this process.")],
    cluster: Annotated[str | None, typer.Option(metavar="ADDRESS", help="As in `roomtone run`.")] = None,
) -> None:
    """Run one room for `roomtone run --rooms`, which starts this by itself."""
    from config.load import load

    asyncio.run(_run(load(), gateway, run, cluster))


async def _run(settings: Settings, gateway: str, run: str, cluster: str | None) -> None:
    import structlog

    from bot.cli.environment import local_zone, logging_from_settings
    from bot.cli.run import STOP_WITHIN_S, pool_of
    from bot.cli.signals import stop_on_signals
    from bot.remote.link_token import read_link_token
    from bot.wiring.room_process import GatewayAddress, run_room_process
    from bot.wiring.room_processes import token_file
    from bot.wiring.settings import BotSettings

    parts = BotSettings(**{field.name: getattr(settings, field.name) for field in fields(BotSettings)})
    stop = asyncio.Event()
    with logging_from_settings(settings), stop_on_signals(stop, within_s=STOP_WITHIN_S):
        address = GatewayAddress(gateway, read_link_token(token_file(parts)), run)
        reason = await run_room_process(parts, address, stop=stop, zone=local_zone(), pool=pool_of(settings, cluster))
        structlog.get_logger().info("room_process_ended", reason=reason)
