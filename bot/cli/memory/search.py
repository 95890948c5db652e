"""`roomtone memory search`: finds what was said in any session, word for word, with speaker and time."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Annotated

import typer

from bot.cli.output import print_json, say
from bot.clock import SystemClock
from compaction.memory.passage import Scope
from config.load import load

if TYPE_CHECKING:
    from compaction.memory.recall import RecallHit
    from config.schema import Settings

MOST = 50


def command(
    query: Annotated[
        str, typer.Argument(help="Words to search for. An empty text ('') lists the newest turns.", metavar="QUERY")
    ],
    speaker: Annotated[str | None, typer.Option(help="Only what this person said.", metavar="NAME")] = None,
    since: Annotated[
        str | None,
        typer.Option(help="Only since that time: 21:04, 45m, 'yesterday 20:00', 2026-01-31.", metavar="WHEN"),
    ] = None,
    until: Annotated[str | None, typer.Option(help="Only before that time.", metavar="WHEN")] = None,
    session: Annotated[
        str | None, typer.Option(help="Only this session: its id or how it begins.", metavar="ID")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=MOST, help="The most results to show.")] = 8,
    archived: Annotated[bool, typer.Option("--archived", help="Search archived segments too.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")] = False,
) -> None:
    """Search what was said, on all servers of this bot.

    The best results come first, and what was said to the bot last; a correction comes before what it corrects.
    """
    from bot.local_zone import LocalZone
    from bot.memory.admin import MemoryAdminError
    from bot.time_phrases import TimeNotUnderstoodError, parse_moment

    zone, now = LocalZone(), SystemClock().now()
    try:
        scope = Scope(
            speaker=speaker,
            since=None if since is None else parse_moment(since, now=now, zone=zone),
            until=None if until is None else parse_moment(until, now=now, zone=zone),
            archived=archived,
            with_bot=True,
        )
        found = asyncio.run(_search(load(), query, scope, session, limit))
    except (TimeNotUnderstoodError, MemoryAdminError) as error:
        raise typer.BadParameter(str(error)) from error
    if as_json:
        print_json([_fields(each) for each in found])
        return
    if not found:
        say("Nothing was found.")
        return
    from bot.brain.tools.memory import format_recalled

    say("\n\n".join(format_recalled(each, zone) for each in found))


async def _search(
    settings: Settings, query: str, scope: Scope, session: str | None, limit: int
) -> tuple[RecallHit, ...]:
    """Search the configured database.

    `session`: the beginning of a session's id. Raises `MemoryAdminError` if not exactly one session begins with it.
    """
    from dataclasses import replace

    from bot.cli.environment import find_session, open_existing_database
    from bot.embedding.factory import open_embedder
    from bot.memory.access_log import AccessLog
    from bot.memory.recall import Recall
    from bot.store.search.search import SqlRecallIndex
    from bot.store.search.vector_store import VectorStore
    from bot.store.tiers import TierStore
    from bot.store.turns import SqlTurnStore

    async with AsyncExitStack() as stack:
        database = await stack.enter_async_context(open_existing_database(settings))
        clock = SystemClock()
        scope = replace(scope, session_id=await find_session(database, session))
        embedder = await stack.enter_async_context(
            open_embedder(settings.recall, models=settings.models, llm=settings.llm)
        )
        vectors = VectorStore(database)
        accesses = AccessLog(TierStore(database), clock)
        index = SqlRecallIndex(database, vectors)
        recall = Recall(index, SqlTurnStore(database, clock), embedder=embedder)
        found = await recall.search(query, scope, limit=limit)
        # What is shown counts as read: segments that people look for are not cold.
        accesses.note_hits(found)
        await accesses.write()
        return found


def _fields(recalled: RecallHit) -> dict[str, object]:
    """Return one result as JSON. The keys are public."""
    by = recalled.superseded_by
    return {
        "kind": recalled.kind.value,
        "session": recalled.session_id,
        "seq": recalled.seq,
        "seq_from": recalled.seq_from,
        "seq_to": recalled.seq_to,
        "speaker": recalled.speaker,
        "at": recalled.at,
        "text": recalled.text,
        "score": round(recalled.score, 6),
        "relevance": round(recalled.relevance, 3),
        "likeness": None if recalled.likeness is None else round(recalled.likeness, 3),
        "superseded_by": None if by is None else {"session": by.session_id, "seq": by.seq},
        "supersedes": [{"session": each.session_id, "seq": each.seq} for each in recalled.supersedes],
        "turns": [
            {
                "seq": turn.seq,
                "kind": turn.kind.value,
                "at": turn.started_at,
                "parts": [{"speaker": part.speaker, "text": part.text} for part in turn.parts],
            }
            for turn in recalled.turns
        ],
    }
