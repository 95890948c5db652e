"""Which turns of other sessions a session's prompts have quoted, and so where the bot may have told of them.

The bot finds what was said in earlier sessions, and may say it again. So a quoted turn counts as said where it was
quoted: if it is forgotten, the bot's replies from there on go too. Raises `StoreError`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import and_, case, func, or_, select

from bot.store.claims import writing_session
from bot.store.history import turns_where
from bot.store.inserts import add_all_once
from bot.store.speakers import may_have_part_of, may_list, was_told
from bot.store.tables import notes, quoted_turns, sessions, turns
from compaction.memory.forgetting import has_part_of
from compaction.model import SessionId, Turn, TurnKind

if TYPE_CHECKING:
    from collections.abc import Collection

    from sqlalchemy.ext.asyncio import AsyncConnection

    from bot.store.database import Database


@dataclass(frozen=True, slots=True)
class QuotedTurn:
    """That a session's prompts quoted something of another session. `from_seq`: the first turn that may tell of it.

    `source_seq`: the quoted turn; None for a note or a summary.
    """

    session_id: SessionId
    from_seq: int
    source_session: SessionId
    source_seq: int | None


class QuoteStore:
    """Stores quotes in an open `Database`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def store(self, found: Collection[QuotedTurn]) -> None:
        """Store these quotes, unless a session of theirs is not stored."""
        for session_id in sorted({each.session_id for each in found}):
            here = [each for each in found if each.session_id == session_id]
            async with writing_session(self._database, session_id) as connection:
                of_these = sessions.c.id.in_(sorted({session_id, *(each.source_session for each in here)}))
                stored = set(await connection.scalars(select(sessions.c.id).where(of_these)))
                values: list[dict[str, object]] = [
                    {
                        "session_id": session_id,
                        "from_seq": each.from_seq,
                        "source_session": each.source_session,
                        "source_seq": each.source_seq,
                    }
                    for each in here
                    if {session_id, each.source_session} <= stored
                ]
                await add_all_once(connection, quoted_turns, values)


async def first_turns_about(
    database: Database, person_id: str, where: Collection[SessionId], *, seq: int | None = None
) -> dict[SessionId, int]:
    """Return the sessions that may tell what a person said or showed, each with the first turn that may; those in which
    they did so themselves come last.

    `where`: the sessions in which they did. `seq`: only what they said in this turn of these.
    """
    first: dict[SessionId, int] = {}
    for each in where:
        # In a transaction of its own: what somebody has said in years takes longer than one may take.
        async with database.reading() as connection:
            found = await _first_turn(connection, each, person_id, seq)
        if found is not None:
            first[each] = found
    if seq is None:
        async with database.reading() as connection:
            for each, from_seq in (await _first_of_bot(connection, person_id)).items():
                first[each] = min(from_seq, first.get(each, from_seq))
    waiting = list(first)
    while waiting:
        source = waiting.pop()
        async with database.reading() as connection:
            quoting = await _quoting(connection, source, person_id, seq, from_seq=first[source])
        for each, from_seq in quoting.items():
            if each not in first or from_seq < first[each]:
                first[each] = from_seq
                waiting.append(each)
    return {each: first[each] for each in sorted(first, key=lambda each: each in where)}


async def _first_turn(
    connection: AsyncConnection, session_id: SessionId, person_id: str, seq: int | None
) -> int | None:
    """Return the first turn of a session that may tell what a person said or showed; None: there is nothing of them."""
    said = [int(turn.seq) for turn in await turns_of_person(connection, session_id, person_id, seq)]
    of_them = (notes.c.session_id == session_id) & (notes.c.person_id == person_id)
    shown_at = None if seq is not None else await connection.scalar(select(func.min(notes.c.at)).where(of_them))
    if shown_at is not None:
        # Turns are numbered as they are stored: a long one that began before the note may be the last.
        later = func.min(case((turns.c.ended_at >= shown_at, turns.c.seq)))
        next_one = func.coalesce(func.max(turns.c.seq) + 1, 0)
        found = select(func.coalesce(later, next_one)).where(turns.c.session_id == session_id)
        said.append((await connection.scalars(found)).one())
    return min(said, default=None)


async def _first_of_bot(connection: AsyncConnection, person_id: str) -> dict[SessionId, int]:
    """Return the sessions in which the bot told something to a person or of its own about them, each with the first
    turn in which it did.
    """
    theirs = was_told(person_id) | may_list(turns.c.sources, person_id)
    wanted = select(turns.c.session_id, func.min(turns.c.seq).label("first")).where(theirs).group_by(turns.c.session_id)
    return {SessionId(row.session_id): row.first for row in await connection.execute(wanted)}


async def turns_of_person(
    connection: AsyncConnection, session_id: SessionId, person_id: str, seq: int | None = None
) -> list[Turn]:
    """Return the turns in which a person spoke, or turn `seq` alone if they did in it."""
    theirs = (turns.c.session_id == session_id) & may_have_part_of(person_id)
    if seq is not None:
        theirs &= turns.c.seq == seq
    return [turn for turn in await turns_where(connection, theirs) if has_part_of(turn, person_id)]


async def _quoting(
    connection: AsyncConnection, source: SessionId, person_id: str, seq: int | None, *, from_seq: int
) -> dict[SessionId, int]:
    """Return the sessions that quote what the person said in a session (in turn `seq` alone if that is given), or what
    the bot said there from `from_seq` on, each with the first turn that may tell of it.
    """
    same = and_(turns.c.session_id == quoted_turns.c.source_session, turns.c.seq == quoted_turns.c.source_seq)
    theirs = may_have_part_of(person_id)
    if seq is not None:
        theirs &= turns.c.seq == seq
    of_bot = turns.c.kind.in_([TurnKind.ASSISTANT.value, TurnKind.EFFECT.value]) & (turns.c.seq >= from_seq)
    wanted = (
        select(quoted_turns.c.session_id, func.min(quoted_turns.c.from_seq).label("first"))
        .outerjoin(turns, same)
        .where(
            quoted_turns.c.source_session == source,
            or_(quoted_turns.c.source_seq.is_(None), theirs, of_bot),
        )
        .group_by(quoted_turns.c.session_id)
    )
    return {SessionId(row.session_id): row.first for row in await connection.execute(wanted)}
