"""The rows that belong to one person each: deletes them with their person, and shows them to them.

A column of `bot.store.tables` says whose a row is (`OfPeople.owns_row`), and its table has the session with which the
row expires. Such a table needs nothing else to be forgotten, exported and restored.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from sqlalchemy import Row, delete, select, union, update

from bot.store.tables import OF_PEOPLE, metadata, sessions

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sqlalchemy.ext.asyncio import AsyncConnection

    from compaction.model import SessionId

_OF_PEOPLE = [
    (column, column.info[OF_PEOPLE])
    for table in metadata.sorted_tables
    for column in table.columns
    if OF_PEOPLE in column.info
]
_OWNERS = tuple(column for column, declared in _OF_PEOPLE if declared.owns_row)
_BY_MODEL = tuple(column for column, declared in _OF_PEOPLE if declared.by_model)
# The tables whose ids never come back: what is missing below the highest one was deleted.
COUNTED = tuple(each.table.name for each in _OWNERS if each.table.dialect_options["sqlite"]["autoincrement"])


async def forget_own_rows(
    connection: AsyncConnection, person_id: str, *, session_id: SessionId | None = None, guild_id: int | None = None
) -> None:
    """Delete a person's rows, inside a write transaction: everywhere, of one session, or on one server."""
    for owner in _OWNERS:
        theirs, of_session = owner == person_id, owner.table.c.session_id
        if session_id is not None:
            theirs &= of_session == session_id
        if guild_id is not None:
            theirs &= of_session.in_(select(sessions.c.id).where(sessions.c.guild_id == guild_id))
        await connection.execute(delete(owner.table).where(theirs))


async def empty_words_by_models(connection: AsyncConnection, session_id: SessionId) -> None:
    """Take the words out of the rows of a session in which somebody is forgotten: they may be that person's."""
    for column in _BY_MODEL:
        here = column.table.c.session_id == session_id
        await connection.execute(update(column.table).where(here).values({column: ""}))


async def owners_of_rows(connection: AsyncConnection) -> frozenset[str]:
    """Return the ids of all people who have such a row."""
    return frozenset(await connection.scalars(union(*map(select, _OWNERS))))


async def own_rows(connection: AsyncConnection, person_id: str, *, hidden: Mapping[int, set[str]]) -> dict[str, object]:
    """Return a person's rows for them to see, by what /my-data calls them. `hidden`: the ids of others who opted out,
    by server; words that may be theirs are left out.
    """
    return {
        owner.info[OF_PEOPLE].exported: [
            {
                name.replace("guild", "server"): "" if name in _left_out(row, hidden) else _shown(name, value)
                for name, value in row._mapping.items()
                if name not in {"id", owner.name}
            }
            for row in await connection.execute(
                select(owner.table).where(owner == person_id).order_by(*owner.table.primary_key)
            )
        ]
        for owner in _OWNERS
    }


def _left_out(row: Row[Any], hidden: Mapping[int, set[str]]) -> frozenset[str]:
    """Return the columns of a row by a model that may have words of who is hidden there."""
    is_theirs = "people" in row._mapping and not hidden.get(row.guild_id, set()).isdisjoint(json.loads(row.people))
    return frozenset(column.name for column in _BY_MODEL if is_theirs)


def _shown(name: str, value: object) -> object:
    if name.endswith("_at") and isinstance(value, float):
        return iso(value)
    # A number of Discord's is too large for the numbers of many programs.
    return str(value) if name.endswith("_id") and isinstance(value, int) else value


def iso(at: float) -> str:
    """Return a time as people and programs read it."""
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds")
