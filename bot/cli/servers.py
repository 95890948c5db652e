"""`roomtone servers`: the servers that have used the bot, what each costs, and what it may cost. `admit` and `refuse`
say which the bot serves.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from bot.cli.environment import open_existing_database
from bot.cli.output import open_console, plain_table, print_json, say
from bot.clock import SystemClock
from bot.cost import NOTHING, Cost
from bot.errors import BotError
from bot.participation.costs import ceiling_of, in_dollars
from bot.store.servers import AdmissionStore, UsageStore, server_id
from config.load import load

if TYPE_CHECKING:
    from collections.abc import Mapping

    from config.schema import Settings

app = typer.Typer(help="List the servers by what they have used, and say which the bot serves.")

DAY_S = 86_400
DOLLARS = "US dollars"
NUMBERS = ("tokens today", "in 30 days", "calls in 30 days", "minutes spoken", DOLLARS)
NOBODY = "No server has used anything in the last 30 days."
NO_LIMIT = "no limit"
DECIDED = {None: "", True: "admitted", False: "refused"}


@dataclass(frozen=True, slots=True)
class _Found:
    """What is known of all servers: what each has used today and in a month, which have a room, and their names."""

    today: Mapping[int, Cost]
    month: Mapping[int, Cost]
    in_rooms: frozenset[int]
    names: Mapping[int, str]
    # For each server that was admitted or refused whether it is served.
    decided: Mapping[int, bool]


@app.callback(invoke_without_command=True)
def command(
    context: typer.Context,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")] = False,
) -> None:
    """List the servers by what they have used: today (UTC) and in the last 30 days, and all of them together; where the
    bot is in a room now, the limits of an hour, and whether you have admitted or refused them.

    `participation.servers` in the settings gives one of them other limits. `llm.prices` has prices, without which no
    money is told.
    """

    if context.invoked_subcommand is not None:
        return
    settings = load()
    found = asyncio.run(_look(settings))
    listed = found.month.keys() | found.in_rooms | found.decided.keys()
    ids = sorted(listed, key=lambda each: found.month.get(each, NOTHING).dearness, reverse=True)
    limits = {each: ceiling_of(settings.participation, each) for each in ids}
    if as_json:
        print_json(
            [
                {
                    "guild_id": str(each),
                    "name": found.names.get(each),
                    "in_room": each in found.in_rooms,
                    "served": found.decided.get(each),
                    "today": _fields(found.today.get(each, NOTHING)),
                    "month": _fields(found.month.get(each, NOTHING)),
                    "limits": _fields(limits[each]),
                }
                for each in ids
            ]
        )
        return
    if not ids:
        say(NOBODY)
        return
    sums = [sum(each.values(), NOTHING) for each in (found.today, found.month)]
    shown = NUMBERS if sums[1].dollars else NUMBERS[:-1]
    table = plain_table("server", "room", *shown, "limits of an hour", "", right=NUMBERS)
    for each in ids:
        used = (found.today.get(each, NOTHING), found.month.get(each, NOTHING))
        name = f"{found.names[each]} ({each})" if each in found.names else str(each)
        room = "open" if each in found.in_rooms else ""
        table.add_row(
            Text(name), room, *_numbers(*used)[: len(shown)], _limits(limits[each]), DECIDED[found.decided.get(each)]
        )
    table.add_row("together", str(len(found.in_rooms)), *_numbers(*sums)[: len(shown)], "", "")
    open_console().print(table)


ServerId = Annotated[str, typer.Argument(metavar="ID", help="The server's id.")]


@app.command()
def admit(server: ServerId) -> None:
    """Let the bot serve a server, whatever the settings say. A bot that runs notices within ten seconds."""
    _decide(server, served=True)
    say(f"The bot serves the server {server}. `roomtone invite` prints the link that adds it there.")


@app.command()
def refuse(server: ServerId) -> None:
    """Let the bot leave a server, whatever the settings say. A bot that runs does so within ten seconds."""
    _decide(server, served=False)
    say(f"The bot leaves the server {server}, and does not serve it until `roomtone servers admit {server}`.")


def _decide(server: str, *, served: bool) -> None:
    guild_id = server_id(server)

    async def store() -> None:
        async with open_existing_database(load()) as database:
            await AdmissionStore(database).put(guild_id, served=served)

    asyncio.run(store())


def _numbers(today: Cost, month: Cost) -> tuple[str, ...]:
    amounts = (today.tokens, month.tokens, month.calls, round(month.spoken_s / 60))
    return (*(f"{amount:,}" for amount in amounts), in_dollars(month.dollars))


def _limits(limits: Cost) -> str:
    amounts = ((limits.calls, "calls"), (limits.tokens, "tokens"), (round(limits.spoken_s / 60), "minutes"))
    return ", ".join(f"{amount:,} {what}" for amount, what in amounts if amount) or NO_LIMIT


async def _look(settings: Settings) -> _Found:
    from bot.discord.connection import server_names
    from bot.discord.endpoint import token_of
    from bot.participation.spending import MONTH_S, begin_of_day
    from bot.store.sessions import Sessions

    clock = SystemClock()
    async with open_existing_database(settings) as database:
        usage, month = UsageStore(database), clock.now() - MONTH_S
        today = await usage.by_server(since=begin_of_day(clock.now()).timestamp())
        rooms = await Sessions(database, clock).unfinished(resume_within_s=DAY_S)
        used = await usage.by_server(since=month)
        decided = await AdmissionStore(database).all()
    names: Mapping[int, str] = {}
    try:
        if token_of(settings.discord):
            names = await server_names(settings.discord)
    except BotError as error:
        say(f"The servers have no names here: {error}", err=True)
    return _Found(today, used, frozenset(each.guild_id for each in rooms if each.guild_id is not None), names, decided)


def _fields(cost: Cost) -> dict[str, float]:
    return {
        "calls": cost.calls,
        "tokens": cost.tokens,
        "spoken_s": round(cost.spoken_s, 1),
        "dollars": round(cost.dollars, 6),
    }
