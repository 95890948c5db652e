"""`roomtone memory prune`: deletes what is older than its time, after saying which memory and which times these are."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated

import typer

from bot.cli.output import count, say

if TYPE_CHECKING:
    from bot.memory.retention import RetentionResult
    from config.schema import Settings


def command(
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
) -> None:
    """Prune old archived segments, and delete old sessions and log lines.

    Segments archived 30 days ago keep only their short content. Sessions that ended tiers.retention_days ago are
    deleted with everything in them, and so are log lines of that age. Says which memory it is and which times hold,
    and asks before it deletes. The bot does the same once a day.
    """
    from config.load import load

    settings = load()
    say("\n".join((f"Memory: {asyncio.run(_place(settings))}", *_times(settings))))
    if not yes:
        typer.confirm("What is older will be deleted, which cannot be undone. Go on?", abort=True)
    done = asyncio.run(_prune(settings))
    parts = (
        (done.pruned, "Pruned", "archived segment"),
        (len(done.sessions), "Deleted", "session"),
        (len(done.shortened), "Deleted old parts of", "session"),
        (done.log_lines, "Deleted", "log line"),
    )
    told = [f"{verb} {count(number, noun)}." for number, verb, noun in parts if number]
    say("\n".join(told) or "Nothing was old enough.")
    if not done.wiped:
        say("Another program is reading the database. Close it and run this again to wipe the deleted text.")


async def _place(settings: Settings) -> str:
    """Return where the memory is, without a password. Raises `SetupError` if there is none."""
    from bot.cli.environment import open_existing_database

    storage = settings.storage
    async with open_existing_database(settings) as database:
        return database.dialect.place if storage.database_url is not None else str(storage.database_path.absolute())


def _times(settings: Settings) -> tuple[str, ...]:
    """Return sentences that say for how long what is kept, and whether somebody has chosen that."""
    tiers, logs = settings.tiers, (settings.storage.data_dir / "logs").absolute()
    source = "tiers.retention_days" if "retention_days" in tiers.model_fields_set else "the default"
    kept = _days(tiers.retention_days) if tiers.retention_days else "ever"
    sentence = f"Its sessions, and the log lines in {logs}, are kept for {kept} ({source})."
    if not tiers.enabled:
        return (sentence,)
    return sentence, f"Archived segments keep their details for {_days(tiers.prune_after_days)}."


async def _prune(settings: Settings) -> RetentionResult:
    from bot.cli.environment import open_existing_database
    from bot.clock import SystemClock
    from bot.logs import log_path
    from bot.memory.retention import Retention

    async with open_existing_database(settings) as database:
        logs = log_path(settings.storage.data_dir).parent
        return await Retention(database, settings.tiers, clock=SystemClock(), log_folder=logs).enforce()


def _days(number: float) -> str:
    return f"{number:g} day{'' if number == 1 else 's'}"
