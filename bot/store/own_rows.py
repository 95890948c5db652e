"""The rows that belong to one person each: deletes them with their person, and shows them to them.

A column of `bot.store.tables` says whose a row is (`OfPeople.owns_row`), and its table has the session with which the
row expires. Such a table needs nothing else to be forgotten, exported and restored.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from sqlalchemy import delete, select, update

from bot.store.tables import OF_PEOPLE, metadata, sessions

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy import Column
    from sqlalchemy.ext.asyncio import AsyncConnection

    from compaction.model import SessionId


def _columns(**how: bool) -> Iterator[Column[Any]]:
    """Yield the columns of people that are declared so."""
    for table in metadata.sorted_tables:
        for column in table.columns:
            if OF_PEOPLE in column.info and all(getattr(column.info[OF_PEOPLE], name) is how[name] for name in how):
                yield column


OWNERS = tuple(_columns(owns_row=True))
_BY_MODEL = tuple(_columns(by_model=True))
# The tables whose ids never come back: what is missing below the highest one was deleted.
COUNTED = tuple(each.table.name for each in OWNERS if each.table.dialect_options["sqlite"]["autoincrement"])


async def forget_own_rows(
    connection: AsyncConnection, person_id: str, *, session_id: SessionId | None = None, guild_id: int | None = None
) -> None:
    """Delete a person's rows, inside a write transaction: everywhere, of one session, or on one server."""
    for owner in OWNERS:
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
    found = [await connection.scalars(select(owner).distinct()) for owner in OWNERS]
    return frozenset(person_id for some in found for person_id in some)


async def own_rows(connection: AsyncConnection, person_id: str) -> dict[str, object]:
    """Return a person's rows for them to see, by what /my-data calls them."""
    found: dict[str, object] = {}
    for owner in OWNERS:
        kept = [each for each in owner.table.columns if each is not owner and each.name != "id"]
        wanted = select(*kept).where(owner == person_id).order_by(*owner.table.primary_key)
        found[owner.info[OF_PEOPLE].exported] = [
            {name.replace("guild", "server"): _shown(name, value) for name, value in row._mapping.items()}
            for row in await connection.execute(wanted)
        ]
    return found


def _shown(name: str, value: Any) -> object:
    if value is None:
        return None
    if name.endswith("_at"):
        return datetime.fromtimestamp(value, UTC).isoformat(timespec="seconds")
    # A number of Discord's is too large for the numbers of many programs.
    return str(value) if name.endswith("_id") else value
