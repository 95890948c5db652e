"""`roomtone memory prune`: deletes what is older than its time, after saying which memory and which times these are."""

from __future__ import annotations

import asyncio
from math import inf
from typing import TYPE_CHECKING, Annotated

import typer

from bot.cli.environment import open_existing_database
from bot.cli.output import confirm, count, say
from bot.clock import SystemClock
from config.load import load

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bot.memory.retention import RetentionResult
    from bot.settings import StorageSettings
    from bot.store.database import Database
    from compaction.model import SessionId
    from config.schema import Settings


def command(
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
) -> None:
    """Delete old sessions and log lines, and prune the archive.

    Segments archived 30 days ago keep only their short content. Sessions that ended tiers.retention_days ago are
    deleted with everything in them, and so are log lines of that age. Where a server has chosen a shorter time, that
    holds for its sessions. Says which memory it is and which times hold, and asks before it deletes. The bot does the
    same once a day.
    """
    settings = load()
    place, shorter = asyncio.run(_memory(settings))
    say("\n".join((f"Memory: {place}", *_times(settings, shorter))))
    if not yes:
        confirm("What is older will be deleted, which cannot be undone. Go on?")
    done = asyncio.run(_prune(settings))
    parts = (
        (done.pruned, "Pruned", "archived segment"),
        (len(done.sessions), "Deleted", "session"),
        (done.log_lines, "Deleted", "log line"),
    )
    sentences = [f"{verb} {count(number, noun)}." for number, verb, noun in parts if number]
    say("\n".join(sentences) or "Nothing was old enough.")
    if not done.wiped:
        say("Another program is reading the database. Close it and run this again to wipe the deleted text.")


async def _memory(settings: Settings) -> tuple[str, Mapping[int, float]]:
    """Return where the memory is, without a password, and for how many days the servers keep it that chose a shorter
    time. Raises `SetupError` if there is none.
    """
    from bot.memory.retention import shorter_times
    from bot.store.servers import SqlServerSettings

    storage = settings.storage
    async with open_existing_database(settings) as database:
        place = database.dialect.place if storage.database_url is not None else str(storage.database_path.absolute())
        chosen = await SqlServerSettings(database, SystemClock()).all()
    return place, shorter_times(settings.tiers.retention_days, chosen)


def _times(settings: Settings, shorter: Mapping[int, float]) -> list[str]:
    """Return sentences that say for how long what is kept, and whether somebody has chosen that. `shorter`: the days of
    the servers that chose less.
    """
    from bot.memory.retention import PRUNE_AFTER_DAYS

    tiers, logs = settings.tiers, (settings.storage.data_dir / "logs").absolute()
    source = "tiers.retention_days" if "retention_days" in tiers.model_fields_set else "the default"
    kept = _days(tiers.retention_days) if tiers.retention_days else "ever"
    lines = [
        f"Its sessions, and the log lines in {logs}, are kept for {kept} ({source}).",
        f"Archived segments keep their details for {_days(PRUNE_AFTER_DAYS)}.",
    ]
    if shorter:
        chosen = ", ".join(f"{_days(days)} on {guild_id}" for guild_id, days in sorted(shorter.items()))
        lines.append(f"Servers have chosen shorter times for their sessions: {chosen}.")
    return lines


async def _prune(settings: Settings) -> RetentionResult:
    from bot.logs.log_file import log_path
    from bot.memory.retention import Retention

    async with open_existing_database(settings) as database:
        return await Retention(
            database,
            settings.tiers,
            clock=SystemClock(),
            log_folder=log_path(settings.storage.data_dir).parent,
            in_use=await _in_use(settings.storage, database),
        ).enforce()


async def _in_use(storage: StorageSettings, database: Database) -> frozenset[SessionId]:
    """Return the open sessions if a bot runs with this data folder, or on any machine with this PostgreSQL: people may
    sit in its rooms though nobody has spoken for long. Raises `StoreError`.
    """
    from bot.folder_lock import is_locked
    from bot.store.database import describe_database
    from bot.store.sessions import Sessions

    url = storage.database_url
    runs = is_locked(storage.data_dir) or (
        url is not None and bool((await asyncio.to_thread(describe_database, url)).running)
    )
    found = await Sessions(database, SystemClock()).unfinished(resume_within_s=inf) if runs else ()
    return frozenset(each.id for each in found)


def _days(number: float) -> str:
    return f"{number:g} day{'' if number == 1 else 's'}"
