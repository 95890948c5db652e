"""Stores the reminders that people have asked for (`bot.reminders`).

The rows go with their session, when they were told, and with their person (`bot.store.own_rows`).
Raises `StoreError`.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from sqlalchemy import Select, delete, func, insert, or_, select, update

from bot.store.speakers import may_list
from bot.store.tables import LARGEST_NUMBER, attendance, quoted_turns, reminders

if TYPE_CHECKING:
    from collections.abc import Collection

    from sqlalchemy.ext.asyncio import AsyncConnection

    from bot.store.database import Database
    from compaction.model import SessionId


@dataclass(frozen=True, slots=True)
class Reminder:
    """What somebody wants to be told. `due_at`: UTC epoch seconds. `what`: empty if it is only a timer. `whom`: a name,
    if somebody else is to be told. `in_chat`: it is written if the talk is over by then. `people`: the ids of those
    whose words it may have, or whom it may be about; none once these words were taken back. They are known once it is
    stored, as is `id`.
    """

    session_id: SessionId
    guild_id: int
    channel_id: int
    person_id: int
    due_at: float
    what: str = ""
    whom: str = ""
    in_chat: bool = False
    people: tuple[str, ...] = ()
    id: int = 0

    def without_words_of(self, withheld: Collection[str]) -> Reminder:
        """Return it without its words if they may be those of a withheld person (`withheld`: their ids). Ask right
        before it is shown or told: once they are no longer withheld, it has its words again.
        """
        return self if set(withheld).isdisjoint(self.people) else replace(self, what="", whom="", people=())


class ReminderStore:
    """The reminders in one database. Safe for all tasks of one event loop."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, reminder: Reminder, *, most: int) -> bool:
        """Store a reminder, unless its person has so many on the server. Return whether it is stored."""
        values = asdict(reminder) | {"person_id": str(reminder.person_id)}
        del values["id"]
        theirs = (reminders.c.guild_id == reminder.guild_id) & (reminders.c.person_id == values["person_id"])
        async with self._database.writing() as connection:
            kept = await connection.scalar(select(func.count()).select_from(reminders).where(theirs))
            if kept is None or kept >= most:
                return False
            quoted = select(quoted_turns.c.source_session).where(quoted_turns.c.session_id == reminder.session_id)
            heard = or_(attendance.c.session_id == reminder.session_id, attendance.c.session_id.in_(quoted))
            # A timer has nobody's words.
            has_words = bool(reminder.what or reminder.whom)
            there = await connection.scalars(select(attendance.c.person_id).where(heard & has_words).distinct())
            people = json.dumps(sorted({values["person_id"], *there}))
            await connection.execute(insert(reminders).values(values | {"people": people}))
        return True

    async def of(self, guild_id: int, channel_id: int | None = None) -> tuple[Reminder, ...]:
        """Return the reminders of a server, or of one channel, the next one first."""
        wanted = select(reminders).where(reminders.c.guild_id == guild_id)
        if channel_id is not None:
            wanted = wanted.where(reminders.c.channel_id == channel_id)
        return await self._read(wanted)

    async def due(self, now: float) -> tuple[Reminder, ...]:
        """Return those of all servers whose time has come."""
        return await self._read(select(reminders).where(reminders.c.due_at <= now))

    async def find(self, number: int) -> Reminder | None:
        """Return a reminder as it is now; None: it is gone."""
        return next(iter(await self._read(select(reminders).where(reminders.c.id == number))), None)

    async def delete(self, number: int) -> bool:
        """Delete a reminder. Return whether it was there."""
        if not 0 < number <= LARGEST_NUMBER:
            return False
        return bool(await self._database.change(delete(reminders).where(reminders.c.id == number)))

    async def _read(self, wanted: Select[Any]) -> tuple[Reminder, ...]:
        found = await self._database.rows(wanted.order_by(reminders.c.due_at, reminders.c.id))
        return tuple(
            Reminder(**row._asdict() | {"person_id": int(row.person_id), "people": tuple(json.loads(row.people))})
            for row in found
        )


async def forget_in_reminders(connection: AsyncConnection, person_id: str) -> None:
    """Take the words out of the reminders of others that may be about a person, inside a write transaction."""
    may_name = may_list(reminders.c.people, person_id)
    await connection.execute(update(reminders).where(may_name).values(what="", whom="", people="[]"))
