"""`roomtone servers`: the servers that have used the bot, and what each costs."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated

import typer

from bot.cli.environment import open_existing_database
from bot.cli.output import open_console, plain_table, print_json, say
from bot.clock import SystemClock
from bot.cost import NOTHING
from config.load import load

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bot.cost import Cost
    from config.schema import Settings

MONTH_S = 30 * 86_400
NUMBERS = ("tokens today", "in 30 days", "calls in 30 days", "minutes spoken")
NOBODY = "No server has used anything in the last 30 days."


def command(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")] = False,
) -> None:
    """List the servers by what they have used: today (UTC) and in the last 30 days, and all of them together.

    `participation.servers` in the settings gives one of them other limits; `discord.refused_guilds` ends it.
    """
    today, month = asyncio.run(_used(load()))
    names = sorted(month, key=lambda guild_id: (-month[guild_id].tokens, -month[guild_id].spoken_s))
    if as_json:
        print_json(
            [
                {"guild_id": str(name), "today": _fields(today.get(name, NOTHING)), "month": _fields(month[name])}
                for name in names
            ]
        )
        return
    if not names:
        say(NOBODY)
        return
    table = plain_table("server", *NUMBERS, right=NUMBERS)
    rows = [(str(name), today.get(name, NOTHING), month[name]) for name in names]
    for server, day, used in (*rows, ("together", sum(today.values(), NOTHING), sum(month.values(), NOTHING))):
        amounts = (day.tokens, used.tokens, used.calls, round(used.spoken_s / 60))
        table.add_row(server, *(f"{amount:,}" for amount in amounts))
    open_console().print(table)


async def _used(settings: Settings) -> tuple[Mapping[int, Cost], Mapping[int, Cost]]:
    """Return what each server has used today, and in a month."""
    from bot.participation.spending import begin_of_day
    from bot.store.usage import UsageStore

    now = SystemClock().now()
    async with open_existing_database(settings) as database:
        usage = UsageStore(database)
        return await usage.by_server(since=begin_of_day(now).timestamp()), await usage.by_server(since=now - MONTH_S)


def _fields(cost: Cost) -> dict[str, float]:
    return {"calls": cost.calls, "tokens": cost.tokens, "spoken_s": round(cost.spoken_s, 1)}
