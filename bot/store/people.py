"""Stores facts that people said about themselves, with their source; superseded facts are kept as history.

Facts belong to a person id within one guild and are never used in another guild. Every method is one transaction and
raises `StoreError`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from sqlalchemy import Row, Select, delete, func, insert, select, update

from bot.store.claims import lock_server
from bot.store.inserts import put_row
from bot.store.prompts import forget_prompts
from bot.store.rows import turn_from_row
from bot.store.tables import person_draws, person_facts, person_forgets, sessions, turns
from compaction.memory.people import ExtractedFacts, PersonFact, merge_facts
from compaction.model import Seq, SessionId

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from sqlalchemy.ext.asyncio import AsyncConnection

    from bot.store.database import Database

# A session belongs to one channel, so its facts were said there.
_FACTS = select(person_facts, sessions.c.channel_id).join(sessions, sessions.c.id == person_facts.c.session_id)


@dataclass(frozen=True, slots=True)
class ForgottenFacts:
    """How many facts were deleted, and the open sessions on their server, whose prompts may have had them."""

    count: int = 0
    sessions: tuple[SessionId, ...] = ()


class PeopleStore:
    """Facts about people. Safe for all tasks of one event loop."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def extracted_through(self, session_id: SessionId) -> int:
        """Return the turn number before which facts were extracted from a session."""
        wanted = select(person_draws.c.through_seq).where(person_draws.c.session_id == session_id)
        return int(await self._database.value(wanted) or 0)

    async def store_facts(
        self,
        session_id: SessionId,
        drawn: ExtractedFacts,
        *,
        through: int,
        is_current: Callable[[int], bool],
    ) -> tuple[PersonFact, ...] | None:
        """Store the facts drawn from the turns before `through`, superseding older ones; return the new facts.

        Facts from turns that were processed before change nothing. `is_current`: returns whether nobody else has made
        this revision of the session since they were drawn. Otherwise something may have been forgotten: nothing is
        stored, and the result is None.
        """
        async with self._database.writing() as connection:
            stored = await connection.scalar(select(sessions.c.revision).where(sessions.c.id == session_id))
            if not is_current(stored or 0):
                return None
            is_new = person_draws.c.through_seq < through
            drawn_until: dict[str, object] = {"through_seq": through}
            if not await put_row(connection, person_draws, {"session_id": session_id}, drawn_until, where=is_new):
                return ()
            drawn = await _still_said(connection, session_id, drawn)
            theirs = _of_people(drawn.people, await _guild(connection, session_id))
            settled = merge_facts(drawn, await _known(connection, theirs))
            for fact in settled.superseded:
                await connection.execute(
                    update(person_facts)
                    .where(person_facts.c.id == fact.id)
                    .values(superseded_by=fact.superseded_by, superseded_at=fact.superseded_at)
                )
            for fact in settled.added:
                await connection.execute(insert(person_facts).values(_values(fact)))
            return settled.added

    async def facts_about(
        self, people: Collection[str], guild_id: int | None, *, history: bool = False
    ) -> tuple[PersonFact, ...]:
        """Return the facts about these people in this guild, oldest first. `history`: include superseded facts."""
        wanted = _of_people(people, guild_id)
        if not history:
            wanted = wanted.where(person_facts.c.superseded_at.is_(None))
        async with self._database.reading() as connection:
            return await _known(connection, wanted)

    async def forget(self, person_id: str, guild_id: int | None) -> ForgottenFacts:
        """Delete all facts about a person in this guild, history included.

        No facts are extracted later from the turns that the person has spoken until now.
        """
        of_guild = select(sessions.c.id).where(sessions.c.guild_id.is_not_distinct_from(guild_id))
        async with self._database.writing() as connection:
            await lock_server(connection, guild_id)
            result = await connection.execute(
                delete(person_facts).where(
                    person_facts.c.person_id == person_id, person_facts.c.session_id.in_(of_guild)
                )
            )
            await _exclude_from_extraction(connection, person_id, of_guild)
            if not result.rowcount:
                return ForgottenFacts()
            await forget_prompts(connection, [guild_id])
            is_open = sessions.c.ended_at.is_(None)
            found = await connection.scalars(select(sessions.c.id).where(sessions.c.id.in_(of_guild), is_open))
            return ForgottenFacts(result.rowcount, tuple(map(SessionId, found)))


async def _exclude_from_extraction(connection: AsyncConnection, person_id: str, of_guild: Select[Any]) -> None:
    """Exclude the person's turns so far from extraction, in all sessions that are not fully extracted yet."""
    said = (
        select(turns.c.session_id, (func.max(turns.c.seq) + 1).label("through"))
        .where(turns.c.session_id.in_(of_guild))
        .group_by(turns.c.session_id)
        .subquery()
    )
    undrawn = (
        select(said.c.session_id, said.c.through)
        .outerjoin(person_draws, person_draws.c.session_id == said.c.session_id)
        .where(func.coalesce(person_draws.c.through_seq, 0) < said.c.through)
    )
    for row in (await connection.execute(undrawn)).all():
        key: dict[str, object] = {"session_id": row.session_id, "person_id": person_id}
        await put_row(connection, person_forgets, key, {"through_seq": row.through})


async def _still_said(connection: AsyncConnection, session_id: SessionId, drawn: ExtractedFacts) -> ExtractedFacts:
    """Return the drawn facts, except those whose source was forgotten before or during the extraction."""
    of_session = person_forgets.c.session_id == session_id
    forgotten = {
        row.person_id: row.through_seq for row in await connection.execute(select(person_forgets).where(of_session))
    }
    seqs = {fact.turn_seq for fact in drawn.facts}
    found = await connection.execute(
        select(turns).where(turns.c.session_id == session_id, turns.c.seq.in_(sorted(seqs)))
    )
    speakers = {row.seq: {part.speaker_id for part in turn_from_row(row).parts} for row in found}
    return replace(
        drawn,
        facts=tuple(
            fact
            for fact in drawn.facts
            if fact.turn_seq >= forgotten.get(fact.person_id, 0)
            and fact.person_id in speakers.get(fact.turn_seq, {fact.person_id})
        ),
    )


async def _guild(connection: AsyncConnection, session_id: SessionId) -> int | None:
    guild: int | None = await connection.scalar(select(sessions.c.guild_id).where(sessions.c.id == session_id))
    return guild


def _of_people(people: Collection[str], guild_id: int | None) -> Select[Any]:
    return _FACTS.where(
        person_facts.c.person_id.in_(sorted(people)), sessions.c.guild_id.is_not_distinct_from(guild_id)
    )


async def _known(connection: AsyncConnection, wanted: Select[Any]) -> tuple[PersonFact, ...]:
    found = await connection.execute(wanted.order_by(person_facts.c.at, person_facts.c.turn_seq, person_facts.c.id))
    return tuple(map(_fact, found))


def _values(fact: PersonFact) -> dict[str, object]:
    return {
        "id": fact.id,
        "session_id": fact.session_id,
        "turn_seq": fact.turn_seq,
        "person_id": fact.person_id,
        "name": fact.name,
        "text": fact.text,
        "at": fact.at,
        "importance": fact.importance,
        "superseded_by": fact.superseded_by,
        "superseded_at": fact.superseded_at,
    }


def _fact(row: Row[Any]) -> PersonFact:
    return PersonFact(
        id=row.id,
        person_id=row.person_id,
        name=row.name,
        text=row.text,
        session_id=SessionId(row.session_id),
        turn_seq=Seq(row.turn_seq),
        at=row.at,
        superseded_by=row.superseded_by,
        superseded_at=row.superseded_at,
        importance=row.importance,
        channel_id=row.channel_id,
    )
