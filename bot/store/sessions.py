"""Stores sessions: which channel a conversation belongs to, when it began and whether it ended.

Owns the session rows; `turns` stores the turns. After a crash the bot finds its open session here and resumes it,
unless the session has been silent for too long.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from sqlalchemy import ColumnElement, Row, Select, case, delete, exists, func, insert, literal, select, update

from bot.shards import ONLY_SHARD, Shards
from bot.store.attendance import AttendanceStore, readable_by
from bot.store.claims import RoomClaim, check_claim, claim_room, fenced, lock_server, refuse_stale, writing_session
from bot.store.forgettings import Forgetting, forgettings_after, last_forgetting, people_among
from bot.store.posted_transcripts import PostedTranscripts, WebhookDeliveries
from bot.store.reminders import ReminderStore
from bot.store.speakers import quotable_speakers
from bot.store.tables import Prose, sessions, turns
from compaction.model import SessionId

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from sqlalchemy.ext.asyncio import AsyncConnection

    from bot.clock import Clock
    from bot.store.database import Database
    from bot.viewers import Viewer


@dataclass(frozen=True, slots=True)
class StoredSession:
    """One session. `guild_id` and `channel_id` are Discord's; None for a session without a channel (a replay).

    Times are UTC epoch seconds; `last_turn_at` is the end of the last stored turn, or `started_at` before one.
    `turn_count`: how many turns it has had; the seq of the next one.
    """

    id: SessionId
    guild_id: int | None
    channel_id: int | None
    started_at: float
    ended_at: float | None
    last_turn_at: float
    turn_count: int


@dataclass(frozen=True, slots=True)
class SessionBegin:
    """Where and when a session began, by which people choose one. `started_at`: UTC epoch seconds."""

    id: SessionId
    channel_id: int | None
    started_at: float


@dataclass(frozen=True, slots=True)
class OpenedSession:
    """A channel's session. `resumed`: it existed before. `claim`: what the writes of its room carry. `forgettings`: how
    often anybody had been forgotten before.
    """

    session: StoredSession
    resumed: bool
    claim: RoomClaim
    forgettings: int


def new_session_id(now: float) -> SessionId:
    """Return a readable, sortable id: the UTC time and six random hex digits."""
    return SessionId(f"{datetime.fromtimestamp(now, UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(3)}")


class Sessions:
    """The sessions in an open `Database`. Every method is one transaction and raises `StoreError`.

    `posted_transcripts`: which messages have their words. `attendance`: who was there, to read it. `reminders`: what
    people want to be told. `webhooks`: which sessions are to be sent to an address.
    """

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self.posted_transcripts = PostedTranscripts(database, clock)
        self.attendance = AttendanceStore(database)
        self.reminders = ReminderStore(database)
        self.webhooks = WebhookDeliveries(database)

    async def open(
        self,
        *,
        guild_id: int,
        channel_id: int,
        resume_within_s: float,
        session_id: SessionId | None = None,
        running: str | None = None,
    ) -> OpenedSession:
        """Claim the server's room, and return the channel's open session, or begin one.

        From then on, what another process still writes as this server's room is refused (`bot.store.claims`).
        An open session whose last turn is older than `resume_within_s` is ended first, unless it is the one that was
        `running` until now: people may be silent together for as long as they like. `session_id`: that of a new
        session.
        """
        now = self._clock.now()
        async with self._database.writing(server=guild_id) as connection:
            claim, forgettings = await claim_room(connection, guild_id), await last_forgetting(connection)
            is_here = (sessions.c.guild_id == guild_id) & (sessions.c.channel_id == channel_id)
            found = await _one(connection, _select_sessions().where(is_here, sessions.c.ended_at.is_(None)))
            if found is not None:
                if found.id == running or now - found.last_turn_at <= resume_within_s:
                    return OpenedSession(found, resumed=True, claim=claim, forgettings=forgettings)
                await _end(connection, found.id, at=found.last_turn_at)
            begun = StoredSession(session_id or new_session_id(now), guild_id, channel_id, now, None, now, 0)
            place = {"id": begun.id, "guild_id": guild_id, "channel_id": channel_id, "started_at": now}
            await connection.execute(insert(sessions).values(place))
            return OpenedSession(begun, resumed=False, claim=claim, forgettings=forgettings)

    async def check(self, claim: RoomClaim) -> None:
        """Raise `StaleOwnerError` if somebody has claimed the server's room since."""
        # Rooms ask this all the time: on a connection that only reads, and not on one that next writes.
        await check_claim(self._database, claim)

    async def forgettings_after(self, number: int) -> tuple[Forgetting, ...]:
        """Return who was forgotten after that, in order."""
        async with self._database.reading() as connection:
            return await forgettings_after(connection, number)

    def people_among(self, found: Iterable[Forgetting], ids: Collection[str]) -> dict[str, list[Forgetting]]:
        """Return what was forgotten of which of these people, by their id."""
        return people_among(found, ids, self._database.key)

    async def unfinished(self, *, resume_within_s: float) -> tuple[StoredSession, ...]:
        """Return the open channel sessions, left by a crashed process, that are recent enough to resume."""
        oldest = self._clock.now() - resume_within_s
        wanted = _select_sessions().where(sessions.c.ended_at.is_(None), sessions.c.channel_id.is_not(None))
        found = await self._database.rows(wanted.order_by(sessions.c.started_at))
        return tuple(each for each in map(_session, found) if each.last_turn_at >= oldest)

    async def find(self, session_id: SessionId) -> StoredSession | None:
        """Return the session with this id, or None. The id may be whatever somebody typed."""
        typed = literal(session_id, Prose())
        async with self._database.reading() as connection:
            return await _one(connection, _select_sessions().where(sessions.c.id == typed))

    async def recent(
        self, *, limit: int = 20, before: float | None = None, channels: Collection[int] | None = None
    ) -> tuple[StoredSession, ...]:
        """Return sessions, latest first. `before` (UTC epoch seconds): only those that began earlier. `channels`: only
        those in these.
        """
        wanted = _select_sessions()
        if before is not None:
            wanted = wanted.where(sessions.c.started_at < before)
        if channels is not None:
            wanted = wanted.where(sessions.c.channel_id.in_(sorted(channels)))
        found = await self._database.rows(wanted.order_by(sessions.c.started_at.desc()).limit(limit))
        return tuple(map(_session, found))

    def attendance_for(self, claim: RoomClaim) -> AttendanceStore:
        """Return `attendance` for the room that holds `claim`, to write it."""
        return AttendanceStore(fenced(self._database, claim))

    async def newest_readable(
        self, viewer: Viewer, *, channel_id: int | None = None, catches_up: bool = False
    ) -> StoredSession | None:
        """Return the newest session with a turn of which somebody may read something. `channel_id`: in this channel.
        `catches_up`: see `viewing_of`.
        """
        wanted = _select_sessions().where(_has_turns(), readable_by(viewer, catches_up=catches_up))
        if channel_id is not None:
            wanted = wanted.where(sessions.c.channel_id == channel_id)
        async with self._database.reading() as connection:
            return await _one(connection, wanted.order_by(sessions.c.started_at.desc()).limit(1))

    async def begins_for(self, viewer: Viewer, *, limit: int) -> tuple[SessionBegin, ...]:
        """Return when and where the newest sessions with a turn began of which somebody may read something, newest
        first.

        No turn is read for it, so there may be many.
        """
        wanted = select(sessions.c.id, sessions.c.channel_id, sessions.c.started_at).where(
            _has_turns(), readable_by(viewer, catches_up=False)
        )
        found = await self._database.rows(wanted.order_by(sessions.c.started_at.desc()).limit(limit))
        return tuple(SessionBegin(SessionId(row.id), row.channel_id, row.started_at) for row in found)

    async def quotable(self, session_id: SessionId, people: Collection[str]) -> frozenset[str]:
        """Return those of these people whom the bot may have quoted in a session though they did not speak there."""
        if not people:
            return frozenset()
        async with self._database.reading() as connection:
            return await quotable_speakers(connection, self._database.sql, session_id, among=people)

    async def end_open(self, guild_id: int, *, except_session: SessionId | None = None) -> tuple[SessionId, ...]:
        """Mark the sessions that rooms of a server have left open ended, each with its last turn and without a closing
        segment; return them. `except_session`: that of the room that runs.
        """
        wanted = _select_sessions().where(
            sessions.c.guild_id == guild_id,
            sessions.c.channel_id.is_not(None),
            sessions.c.ended_at.is_(None),
            sessions.c.id != (except_session or ""),
        )
        async with self._database.writing() as connection:
            await lock_server(connection, guild_id)
            found = tuple(map(_session, await connection.execute(wanted)))
            for each in found:
                await _end(connection, each.id, at=each.last_turn_at)
        return tuple(each.id for each in found)

    async def discard(self, opened: OpenedSession) -> None:
        """Delete a session whose room did not begin, unless it has turns.

        Raises `StaleOwnerError` if another process has claimed the room since: then the session may be in use there.
        """
        async with self._database.writing() as connection:
            await refuse_stale(opened.claim, connection)
            await connection.execute(delete(sessions).where(sessions.c.id == opened.session.id, ~_has_turns()))

    async def delete(self, session_id: SessionId) -> bool:
        """Delete a session with everything in it. Returns False if it is unknown."""
        async with writing_session(self._database, session_id) as connection:
            result = await connection.execute(delete(sessions).where(sessions.c.id == session_id))
            return result.rowcount == 1


async def delete_expired_sessions(
    database: Database,
    *,
    before: float,
    keep: Collection[SessionId] = (),
    guild_id: int | None = None,
    shards: Shards = ONLY_SHARD,
) -> tuple[SessionId, ...]:
    """Delete the sessions that ended before that time (UTC epoch seconds), with everything in them; return them.

    A session that a crash left open ended with its last turn. `keep`: sessions to leave alone. `guild_id`: only those
    of that server. `shards`: only those of the servers that this process serves. Raises `StoreError`.
    """
    last_turn = select(func.max(turns.c.ended_at)).where(turns.c.session_id == sessions.c.id).scalar_subquery()
    ended_at = func.coalesce(sessions.c.ended_at, last_turn, sessions.c.started_at)
    expired = (ended_at < before) & sessions.c.id.not_in(sorted(keep))
    if guild_id is not None:
        expired &= sessions.c.guild_id == guild_id
    found = await database.rows(select(sessions.c.id, sessions.c.guild_id).where(expired))
    # Those of no server count as those of server 0.
    names = [SessionId(row.id) for row in found if shards.serves(row.guild_id or 0)]
    for session_id in names:
        async with writing_session(database, session_id) as connection:
            await connection.execute(delete(sessions).where(sessions.c.id == session_id, expired))
    return tuple(names)


async def check_writable(database: Database) -> None:
    """Begin a write transaction and delete a session that does not exist. Raises `StoreError`.

    A statement is needed: SQLite begins a write transaction on a read-only file too.
    """
    await database.change(delete(sessions).where(sessions.c.id == ""))


def _select_sessions() -> Select[Any]:
    of_session = turns.c.session_id == sessions.c.id
    last = select(func.max(turns.c.ended_at)).where(of_session).scalar_subquery()
    count = select(func.coalesce(func.max(turns.c.seq) + 1, 0)).where(of_session).scalar_subquery()
    # A restored session may hold turns older than its row, so take the later of the two.
    last_turn_at = case((last > sessions.c.started_at, last), else_=sessions.c.started_at)
    return select(sessions, last_turn_at.label("last_turn_at"), count.label("turn_count"))


def _has_turns() -> ColumnElement[bool]:
    return exists().where(turns.c.session_id == sessions.c.id)


async def _one(connection: AsyncConnection, wanted: Select[Any]) -> StoredSession | None:
    row = (await connection.execute(wanted)).one_or_none()
    return None if row is None else _session(row)


async def _end(connection: AsyncConnection, session_id: SessionId, *, at: float) -> None:
    await connection.execute(
        update(sessions).where(sessions.c.id == session_id, sessions.c.ended_at.is_(None)).values(ended_at=at)
    )


def _session(row: Row[Any]) -> StoredSession:
    return StoredSession(
        id=SessionId(row.id),
        guild_id=row.guild_id,
        channel_id=row.channel_id,
        started_at=row.started_at,
        ended_at=row.ended_at,
        last_turn_at=row.last_turn_at,
        turn_count=row.turn_count,
    )
