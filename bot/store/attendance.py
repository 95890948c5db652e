"""Stores when each person was in the channel of a session. `bot.viewers` decides by it who may read what was said.

The rows go with their session, with whoever is forgotten, and with whoever opts out on the server.
Raises `StoreError`.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sqlalchemy import ColumnElement, and_, exists, or_, select, update

from bot.store.inserts import put_row
from bot.store.tables import attendance, sessions
from bot.viewers import AttendedSession, Stay, Viewer
from compaction.model import SessionId

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from sqlalchemy.ext.asyncio import AsyncConnection

    from bot.store.database import Database

# So many sessions that somebody attended are searched, the newest.
MOST_SEARCHED = 1_000


@dataclass(frozen=True, slots=True)
class Presence:
    """Somebody came (`joined`) or left, at a time in UTC epoch seconds."""

    person_id: str
    at: float
    joined: bool


class AttendanceStore:
    """The attendance of all sessions in one database. Safe for all tasks of one event loop."""

    def __init__(self, database: Database) -> None:
        self._database = database

    # -- what a room writes -----------------------------------------------------------------------------------------

    async def resume(self, session_id: SessionId, present: Collection[str], *, at: float) -> None:
        """End the stays of those who left while no room ran. `at`: when the last thing was said before."""
        gone = _unended(session_id) & attendance.c.person_id.not_in(sorted(present))
        async with self._database.writing() as connection:
            for row in (await connection.execute(select(attendance).where(gone))).all():
                await _end(connection, session_id, row.person_id, max(at, row.came_at))

    async def add(self, session_id: SessionId, changes: Iterable[Presence]) -> None:
        """Store who came and left, in order. Whoever is there already does not come again."""
        async with self._database.writing() as connection:
            for change in changes:
                if not change.joined:
                    await _end(connection, session_id, change.person_id, change.at)
                    continue
                here = _unended(session_id) & (attendance.c.person_id == change.person_id)
                if await connection.scalar(select(exists().where(here))):
                    continue
                stay: dict[str, object] = {
                    "session_id": session_id,
                    "person_id": change.person_id,
                    "came_at": change.at,
                }
                await put_row(connection, attendance, stay, {"left_at": None})

    async def present(self, session_id: SessionId) -> frozenset[str]:
        """Return who has come and not left, as it is stored."""
        wanted = select(attendance.c.person_id).where(_unended(session_id))
        return frozenset(await self._database.values(wanted))

    # -- what is read -----------------------------------------------------------------------------------------------

    async def of(self, session_ids: Collection[SessionId], people: Collection[str]) -> dict[SessionId, AttendedSession]:
        """Return these sessions, with when each of these people was there."""
        theirs = and_(attendance.c.session_id == sessions.c.id, attendance.c.person_id.in_(sorted(people)))
        wanted = (
            select(
                sessions.c.id,
                sessions.c.guild_id,
                sessions.c.channel_id,
                sessions.c.ended_at,
                attendance.c.person_id,
                attendance.c.came_at,
                attendance.c.left_at,
            )
            .select_from(sessions.outerjoin(attendance, theirs))
            .where(sessions.c.id.in_(sorted(session_ids)))
            .order_by(attendance.c.came_at)
        )
        found: dict[SessionId, AttendedSession] = {}
        stays: defaultdict[SessionId, defaultdict[str, list[Stay]]] = defaultdict(lambda: defaultdict(list))
        for row in await self._database.rows(wanted):
            session_id = SessionId(row.id)
            found[session_id] = AttendedSession(session_id, row.guild_id, row.channel_id, row.ended_at is None)
            if row.person_id is not None:
                # A crash may leave a stay open in a session that ended: nothing was said after it.
                stays[session_id][row.person_id].append(Stay(row.came_at, row.left_at))
        return {
            each: replace(session, stays={person: tuple(some) for person, some in stays[each].items()})
            for each, session in found.items()
        }

    async def readable(
        self, viewers: Collection[Viewer], channels: Collection[int] | None = None
    ) -> Collection[AttendedSession]:
        """Return the newest sessions of which each of these people may read something, with when they were there.
        `channels`: where; None: anywhere.
        """
        wanted = select(sessions.c.id).where(*(readable_by(each, catches_up=False) for each in viewers))
        if channels is not None:
            wanted = wanted.where(sessions.c.channel_id.in_(sorted(channels)))
        newest = wanted.order_by(sessions.c.started_at.desc(), sessions.c.id).limit(MOST_SEARCHED)
        found = await self._database.values(newest)
        return (await self.of(found, [each.person_id for each in viewers])).values()


def readable_by(viewer: Viewer, *, catches_up: bool) -> ColumnElement[bool]:
    """Return the condition that somebody may read something of a session, as `bot.viewers.viewing_of` decides."""
    was_there = exists().where(attendance.c.session_id == sessions.c.id, attendance.c.person_id == viewer.person_id)
    somewhere = [sessions.c.channel_id.in_(sorted(viewer.opened)), was_there]
    if catches_up:
        somewhere.append(sessions.c.ended_at.is_(None) & (sessions.c.channel_id == viewer.present_in))
    in_allowed = sessions.c.channel_id.in_(sorted(viewer.allowed))
    return and_(sessions.c.guild_id == viewer.guild_id, in_allowed, or_(*somewhere))


def _unended(session_id: SessionId) -> ColumnElement[bool]:
    return (attendance.c.session_id == session_id) & attendance.c.left_at.is_(None)


async def _end(connection: AsyncConnection, session_id: SessionId, person_id: str, at: float) -> None:
    theirs = _unended(session_id) & (attendance.c.person_id == person_id)
    await connection.execute(update(attendance).where(theirs).values(left_at=at))
