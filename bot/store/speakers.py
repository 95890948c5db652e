"""Who has spoken, read from the stored turns: each person's names, sessions, and number of turns; and who may be quoted
in a session in which they did not speak.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Any

from sqlalchemy import func, select, text
from sqlalchemy.exc import DBAPIError

from bot.store.rows import UNREADABLE, parts_of
from bot.store.tables import hearing_opt_outs, sessions, turns
from compaction.model import SessionId

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from sqlalchemy import Select
    from sqlalchemy.ext.asyncio import AsyncConnection

    from bot.store.dialects.port import PlainSql


@dataclass(frozen=True, slots=True)
class StoredSpeaker:
    """A person with stored turns, or whom a server's settings name. `names`: latest first. `last_at`: when they last
    spoke, UTC epoch seconds.
    """

    id: str
    names: tuple[str, ...]
    last_at: float
    turn_count: int
    sessions: tuple[SessionId, ...]

    @property
    def label(self) -> str:
        """Return their latest name, or their id if they never spoke."""
        return self.names[0] if self.names else self.id


async def read_speakers(
    connection: AsyncConnection, wanted: Select[Any], *, of: str | None = None
) -> dict[str, StoredSpeaker]:
    """Return who said a part of the rows of `turns` that `wanted` selects, by their id.

    `of`: only the person with this id, who counts as a speaker of each of these turns that cannot be read.
    """
    return await asyncio.to_thread(_speakers_of, (await connection.execute(wanted)).all(), of)


def _speakers_of(stored: Iterable[Any], of: str | None) -> dict[str, StoredSpeaker]:
    found: dict[str, StoredSpeaker] = {}
    for row in stored:
        for speaker_id, name in _who_spoke(row.parts, of):
            before = found.get(speaker_id) or StoredSpeaker(speaker_id, (), 0.0, 0, ())
            found[speaker_id] = StoredSpeaker(
                speaker_id,
                tuple(dict.fromkeys((*((name,) if name is not None else ()), *before.names))),
                max(before.last_at, row.started_at),
                before.turn_count + 1,
                tuple(dict.fromkeys((*before.sessions, SessionId(row.session_id)))),
            )
    return found


def _who_spoke(parts: str, of: str | None) -> list[tuple[str, str | None]]:
    """Return id and name of each speaker of a turn; nobody, or `of`, if its parts cannot be read."""
    try:
        return [(part.speaker_id, part.speaker) for part in parts_of(parts) if of is None or part.speaker_id == of]
    except UNREADABLE:
        return [] if of is None else [(of, None)]


async def quotable_speakers(
    connection: AsyncConnection, sql: PlainSql, session_id: SessionId, *, among: Collection[str] | None = None
) -> frozenset[str]:
    """Return the ids of the people who spoke in other sessions of a session's server.

    The bot finds what was said in other sessions, and may say it again in this one. Nobody whose opt-out is older than
    its first turn is among them: nothing of theirs was found. `among`: only these people, as far as they spoke before
    its last turn; without it, the session goes on.
    """
    guild_id = await connection.scalar(select(sessions.c.guild_id).where(sessions.c.id == session_id))
    if guild_id is None:
        return frozenset()
    begun = select(func.min(turns.c.started_at)).where(turns.c.session_id == session_id).scalar_subquery()
    earlier = (hearing_opt_outs.c.guild_id == guild_id) & (hearing_opt_outs.c.since < begun)
    unheard = set(map(str, await connection.scalars(select(hearing_opt_outs.c.person_id).where(earlier))))
    if among is not None and unheard.issuperset(among):
        return frozenset()
    last = select(func.max(turns.c.ended_at)).where(turns.c.session_id == session_id)
    until = inf if among is None else await connection.scalar(last)
    found = await _speakers_elsewhere(connection, sql, session_id, guild_id, inf if until is None else until)
    return found - unheard if among is None else (found - unheard).intersection(among)


async def _speakers_elsewhere(
    connection: AsyncConnection, sql: PlainSql, session_id: SessionId, guild_id: int, until: float
) -> frozenset[str]:
    try:
        # PostgreSQL goes on after an error only if it is in a transaction of its own.
        async with connection.begin_nested():
            known = {"guild": guild_id, "session": session_id, "until": until}
            found = await connection.scalars(text(sql.speakers_elsewhere), known)
        return frozenset(str(json.loads(each)) for each in found)
    except (DBAPIError, *UNREADABLE):
        # A turn cannot be read. The others are read here, which takes longer.
        others = select(sessions.c.id).where(sessions.c.guild_id == guild_id, sessions.c.id != session_id)
        wanted = select(turns).where(turns.c.session_id.in_(others), turns.c.started_at < until)
        return frozenset(await read_speakers(connection, wanted))
