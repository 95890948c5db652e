"""`roomtone memory forget`: removes what a person said, everywhere, in one session or in one turn."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Annotated

import typer

from bot.cli.environment import open_existing_database
from bot.cli.output import confirm, count, say
from bot.clock import SystemClock
from bot.store.tables import LARGEST_NUMBER
from config.load import load

if TYPE_CHECKING:
    from bot.memory.personal_data import PersonForgetReport, PersonForgetter
    from bot.store.database import Database
    from bot.store.speakers import StoredSpeaker
    from config.schema import Settings


def command(
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
    from bot.errors import SetupError

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
    if not yes:
        where = f"turn {turn} of session {session}" if turn is not None else f"session {session}"
        where = where if session else count(len(speaker.sessions), "session")
        confirm(f"Everything that {speaker.label} ({speaker.id}) said in {where} will be forgotten. Go on?")
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
    _say_aside(settings)
    if not erased.wiped:
        say("The database's files still have bytes of it, because another program reads them: they go within a day.")


def _say_aside(settings: Settings) -> None:
    """Name the databases that `roomtone restore` has kept, which nobody else would look for."""
    from bot.store.backup import kept_aside

    storage = settings.storage
    if storage.database_url is None and (aside := kept_aside(storage.database_path)):
        it = "it" if len(aside) == 1 else "them"
        say(f"What a restore has kept aside still has it: {', '.join(map(str, aside))}. Delete {it}.")


def _only_in_logs(person: str, session: str | None) -> tuple[StoredSpeaker, ...]:
    """Return who has this id of Discord's though nothing of them is stored: an attempt that failed may have left the
    id in the logs.
    """
    from bot.store.speakers import StoredSpeaker

    wanted = person.strip()
    if session is not None or not re.fullmatch(r"[0-9]{17,19}", wanted):
        return ()
    return (StoredSpeaker(wanted, (), 0.0, 0, ()),)


async def _find(settings: Settings, person: str, session: str | None) -> tuple[StoredSpeaker, ...]:
    from bot.memory.admin import MemoryAdmin

    async with open_existing_database(settings) as database:
        of = None if session is None else await MemoryAdmin(database, SystemClock()).find_session(session)
        return await _forgetter(settings, database).speech.find(person, session_id=of)


async def _forget(
    settings: Settings, speaker: StoredSpeaker, session: str | None, turn: int | None
) -> PersonForgetReport:
    from bot.memory.admin import MemoryAdmin

    async with open_existing_database(settings) as database:
        of = None if session is None else await MemoryAdmin(database, SystemClock()).find_session(session)
        return await _forgetter(settings, database).forget(speaker, session_id=of, seq=turn)


def _forgetter(settings: Settings, database: Database) -> PersonForgetter:
    from bot.logs.log_file import log_path
    from bot.memory.personal_data import PersonForgetter

    return PersonForgetter(database, SystemClock(), log_folder=log_path(settings.storage.data_dir).parent)
