"""`roomtone memory forget` and `prune`: deletes what a person said, everywhere, in one session or in one turn; and what
is older than its time, after saying which memory and which times these are.
"""

from __future__ import annotations

import asyncio
import re
from math import inf
from typing import TYPE_CHECKING, Annotated

import typer

from bot.cli.environment import find_session, open_existing_database
from bot.cli.output import confirm, count, say
from bot.clock import SystemClock
from bot.errors import SetupError
from bot.logs.log_file import log_path
from bot.memory.personal_data import PersonForgetReport, PersonForgetter
from bot.memory.retention import PRUNE_AFTER_DAYS, Retention, RetentionResult, shorter_times
from bot.store.speakers import StoredSpeaker
from bot.store.tables import LARGEST_NUMBER
from config.load import load

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bot.settings import StorageSettings
    from bot.store.database import Database
    from compaction.model import SessionId
    from config.schema import Settings


def forget(
    person: Annotated[
        str, typer.Option("--person", help="The person to forget: an id or a display name.", metavar="NAME|ID")
    ],
    session: Annotated[
        str | None,
        typer.Option("--session", help="Only in this session (its id or the beginning of its id).", metavar="S"),
    ] = None,
    turn: Annotated[
        int | None,
        typer.Option("--turn", help="Only this turn of the session.", metavar="N", min=0, max=LARGEST_NUMBER),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
) -> None:
    """Forget what a person said.

    Their words are removed from turns, facts, screen notes, summaries, search and logs; turns keep their numbers. What
    the bot said in these sessions from their first turn on goes too. Facts about the person are deleted. This cannot be
    undone. A running bot takes the change over by itself. Your own backups and exports still have what was forgotten.
    """
    for option, value in (("--person", person), ("--session", session)):
        if value is not None and not value.strip():
            # A variable of a script that is not set. It must not become everybody or every session.
            raise typer.BadParameter(f"{option} is empty.")
    if turn is not None and session is None:
        raise typer.BadParameter("--turn needs --session: each session numbers its turns from 0.")
    settings = load()
    found = asyncio.run(_find(settings, person, session)) or _only_in_logs(person, session)
    where = f" in session {session}" if session else ""
    nobody = SetupError(f"Nobody called {person}, and no id {person}, has said anything{where} that is stored.")
    if not found:
        raise nobody
    if len(found) > 1:
        listed = "\n".join(f"  {each.id}  {', '.join(each.names)}, {count(each.turn_count, 'turn')}" for each in found)
        raise SetupError(f"{len(found)} people have been called {person}. Say which one by id:\n{listed}")
    (speaker,) = found
    where = f"turn {turn} of session {session}" if turn is not None else f"session {session}"
    where = where if session else count(len(speaker.sessions), "session")
    confirm(f"Everything that {speaker.label} ({speaker.id}) said in {where} will be forgotten. Go on?", yes=yes)
    erased = asyncio.run(_forget(settings, speaker, session, turn))
    done = erased.stored
    if not (done.sessions or done.rules or erased.log_lines):
        if not (speaker.sessions or speaker.names):
            raise nobody
        raise SetupError(f"There was nothing of {speaker.label} to forget there.")
    parts = (
        (done.turns, "turn", ""),
        (done.answers, "answer", " of the bot"),
        (done.facts, "fact", " in segments"),
        (done.notes, "screen note", ""),
        (done.about, "fact", f" about {speaker.label}"),
        (done.rules, "server rule", ""),
        (erased.log_lines, "log line", ""),
    )
    forgotten = ", ".join(f"{count(number, noun)}{where}" for number, noun, where in parts if number)
    where = f", in {count(len(done.sessions), 'session')}" if done.sessions else ""
    say(f"Forgotten: {forgotten or 'nothing but the name'}{where}.")
    say("Your own backups and exports still have it.")
    if not erased.wiped:
        say("The database's files still have bytes of it, because another program reads them: they go within a day.")


def _only_in_logs(person: str, session: str | None) -> tuple[StoredSpeaker, ...]:
    """Return who has this id of Discord's though nothing of them is stored: an attempt that failed may have left the
    id in the logs.
    """

    wanted = person.strip()
    if session is not None or not re.fullmatch(r"[0-9]{17,19}", wanted):
        return ()
    return (StoredSpeaker(wanted, (), 0.0, 0, ()),)


async def _find(settings: Settings, person: str, session: str | None) -> tuple[StoredSpeaker, ...]:
    async with open_existing_database(settings) as database:
        of = await find_session(database, session)
        return await _forgetter(settings, database).speech.find(person, session_id=of)


async def _forget(
    settings: Settings, speaker: StoredSpeaker, session: str | None, turn: int | None
) -> PersonForgetReport:
    async with open_existing_database(settings) as database:
        of = await find_session(database, session)
        return await _forgetter(settings, database).forget(speaker, session_id=of, seq=turn)


def _forgetter(settings: Settings, database: Database) -> PersonForgetter:
    return PersonForgetter(database, SystemClock(), log_folder=log_path(settings.storage.data_dir).parent)


def prune(
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
    confirm("What is older will be deleted, which cannot be undone. Go on?", yes=yes)
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
