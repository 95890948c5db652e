"""`roomtone memory forget`: what a person said leaves the memory, everywhere, in one session, or in one turn."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from bot.store.forgetting import ForgetReport, StoredSpeaker
    from config.schema import Settings


def command(
    person: Annotated[
        str, typer.Option("--person", help="Who wants to be forgotten: an id, or a display name.", metavar="NAME|ID")
    ],
    session: Annotated[
        str | None, typer.Option("--session", help="Only in this session (its id, or how it begins).", metavar="S")
    ] = None,
    turn: Annotated[
        int | None, typer.Option("--turn", help="Only this turn of the session.", metavar="N", min=0)
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask first.")] = False,
) -> None:
    """Forget what a person said.

    Turns keep their numbers and lose the words; facts, notes of their screen, summaries, search and what is kept about
    them go. It cannot be undone. A running bot takes it over by itself.
    """
    from bot.errors import SetupError
    from config.load import load

    if turn is not None and session is None:
        raise typer.BadParameter("--turn needs --session: turns are numbered in each session anew.")
    settings = load()
    found = asyncio.run(_find(settings, person, session))
    if not found:
        where = f" in session {session}" if session else ""
        raise SetupError(f"Nobody called {person}, and no id {person}, has said anything{where} that is stored.")
    if len(found) > 1:
        told = "\n".join(f"  {each.id}  {', '.join(each.names)}, {each.turn_count} turns" for each in found)
        raise SetupError(f"{len(found)} people have been called {person}. Say which one by id:\n{told}")
    (whom,) = found
    if not yes:
        where = f"turn {turn} of session {session}" if turn is not None else f"session {session}"
        where = where if session else f"all {len(whom.sessions)} sessions"
        typer.confirm(
            f"Everything that {whom.names[0]} ({whom.id}) said in {where} will be forgotten. Go on?", abort=True
        )
    done = asyncio.run(_forget(settings, whom, session, turn))
    if not done.sessions:
        raise SetupError(f"There was nothing of {whom.names[0]} to forget there.")
    typer.echo(
        f"Forgotten: {done.turns} turns, {done.answers} answers that told of them, {done.facts} facts of segments, "
        f"{done.notes} notes of what was on screen, and {done.about} things kept about {whom.names[0]}, in "
        f"{len(done.sessions)} sessions."
    )


async def _find(settings: Settings, person: str, session: str | None) -> tuple[StoredSpeaker, ...]:
    from bot.cli.environment import open_existing_database
    from bot.clock import SystemClock
    from bot.memory.admin import MemoryAdmin
    from bot.store.forgetting import SpeechForgetter

    async with open_existing_database(settings) as database:
        clock = SystemClock()
        of = None if session is None else await MemoryAdmin(database, clock).find_session(session)
        return await SpeechForgetter(database, clock).find(person, session_id=of)


async def _forget(settings: Settings, whom: StoredSpeaker, session: str | None, turn: int | None) -> ForgetReport:
    from bot.cli.environment import open_existing_database
    from bot.clock import SystemClock
    from bot.memory.admin import MemoryAdmin
    from bot.store.forgetting import SpeechForgetter

    async with open_existing_database(settings) as database:
        clock = SystemClock()
        of = None if session is None else await MemoryAdmin(database, clock).find_session(session)
        return await SpeechForgetter(database, clock).forget(whom, session_id=of, seq=turn)
