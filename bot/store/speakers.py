"""Who has spoken or shared a screen, read from the stored turns and notes: each person's names, sessions, and number of
turns; and who may be quoted in a session in which they did not speak.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, replace
from math import inf
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import Column, ColumnElement, Select, func, select, text

from bot.store.rows import parts_of
from bot.store.tables import hearing_opt_outs, notes, sessions, turns
from compaction.model import SessionId

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from sqlalchemy.ext.asyncio import AsyncConnection

    from bot.store.dialects.port import DialectSql


@dataclass(frozen=True, slots=True)
class StoredSpeaker:
    """A person with stored turns or notes of their screen, or whom a server's settings name. `names`: latest first.
    `last_at`: when they last spoke or showed something, UTC epoch seconds. `sessions`: where they did.
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


NOBODY: Final[Mapping[str, StoredSpeaker]] = MappingProxyType({})


def may_have_part_of(person_id: str | ColumnElement[str]) -> ColumnElement[bool]:
    """Return the condition that a person may be among the speakers of a turn.

    The id is looked for in the stored JSON, because reading that takes longer. So a turn in which somebody else's text
    is the id matches too. `person_id`: an id, or a column of ids, which have digits only.
    """
    if isinstance(person_id, ColumnElement):
        return turns.c.parts.contains('"' + person_id + '"')
    return may_list(turns.c.parts, person_id)


def may_list(column: Column[Any], person_id: str) -> ColumnElement[bool]:
    """Return the condition that a column of JSON may have the id of a person."""
    return column.contains(json.dumps(person_id), autoescape=True)


def was_told(person_id: str) -> ColumnElement[bool]:
    """Return the condition that the bot told a person a turn."""
    return may_list(turns.c.told_to, person_id)


async def read_speakers(
    connection: AsyncConnection,
    wanted: Select[Any],
    *,
    of: str | None = None,
    known: Mapping[str, StoredSpeaker] = NOBODY,
) -> dict[str, StoredSpeaker]:
    """Return who said a part of the rows of `turns` that `wanted` selects, by their id.

    `of`: only the person with this id. `known`: who spoke in earlier rows.
    """
    found = (await connection.execute(wanted)).all()
    return await asyncio.to_thread(lambda: _speakers_of(found, of, known))


def _speakers_of(stored: Iterable[Any], of: str | None, known: Mapping[str, StoredSpeaker]) -> dict[str, StoredSpeaker]:
    found = dict(known)
    for row in stored:
        for part in parts_of(row.parts):
            speaker_id, name = part.speaker_id, part.speaker
            if of not in (None, speaker_id):
                continue
            before = found.get(speaker_id) or StoredSpeaker(speaker_id, (), 0.0, 0, ())
            found[speaker_id] = StoredSpeaker(
                speaker_id,
                tuple(dict.fromkeys((name, *before.names))),
                max(before.last_at, row.started_at),
                before.turn_count + 1,
                _with_session(before.sessions, SessionId(row.session_id)),
            )
    return found


def _with_session(before: tuple[SessionId, ...], session_id: SessionId) -> tuple[SessionId, ...]:
    # Most turns are of the session of the one before, and somebody may have spoken in hundreds.
    return before if before[-1:] == (session_id,) else tuple(dict.fromkeys((*before, session_id)))


async def with_sharers(
    connection: AsyncConnection,
    known: dict[str, StoredSpeaker],
    *,
    session_id: SessionId | None = None,
    of: str | None = None,
) -> dict[str, StoredSpeaker]:
    """Return the speakers with what the notes of their screens tell, and those of whom there are only such notes.

    `session_id`: only notes of that session. `of`: only the person with this id. Notes without an id are left out.
    """
    wanted = select(notes.c.person_id, notes.c.who, notes.c.at, notes.c.session_id).where(
        notes.c.person_id.is_not(None)
    )
    if session_id is not None:
        wanted = wanted.where(notes.c.session_id == session_id)
    if of is not None:
        wanted = wanted.where(notes.c.person_id == of)
    found = dict(known)
    for row in await connection.execute(wanted.order_by(notes.c.at)):
        before = found.get(row.person_id) or StoredSpeaker(row.person_id, (), 0.0, 0, ())
        found[row.person_id] = replace(
            before,
            names=tuple(dict.fromkeys((*before.names, row.who))),
            last_at=max(before.last_at, row.at),
            sessions=tuple(dict.fromkeys((*before.sessions, SessionId(row.session_id)))),
        )
    return found


async def quotable_speakers(
    connection: AsyncConnection, sql: DialectSql, session_id: SessionId, *, among: Collection[str] | None = None
) -> frozenset[str]:
    """Return the ids of the people who spoke or shared a screen in other sessions of a session's server, and of those
    who shared one in this.

    The bot finds what was said and noted in other sessions, and may say it again in this one. Nobody whose opt-out is
    older than its first turn is among them: nothing of theirs was found. `among`: only these people, as far as they
    spoke before its last turn; without it, the session goes on.
    """
    guild_id = await connection.scalar(select(sessions.c.guild_id).where(sessions.c.id == session_id))
    if guild_id is None:
        return frozenset()
    here = await _sharers(connection, notes.c.session_id == session_id, among)
    begun = select(func.min(turns.c.started_at)).where(turns.c.session_id == session_id).scalar_subquery()
    earlier = (hearing_opt_outs.c.guild_id == guild_id) & (hearing_opt_outs.c.since < begun)
    unheard = set(map(str, await connection.scalars(select(hearing_opt_outs.c.person_id).where(earlier))))
    if among is not None and unheard.issuperset(among):
        return here
    last = select(func.max(turns.c.ended_at)).where(turns.c.session_id == session_id)
    ended = None if among is None else await connection.scalar(last)
    until = inf if ended is None else ended
    others = select(sessions.c.id).where(sessions.c.guild_id == guild_id, sessions.c.id != session_id)
    shown = await _sharers(connection, notes.c.session_id.in_(others) & (notes.c.at < until), among)
    known = {"guild": guild_id, "session": session_id, "until": until}
    spoke = await connection.scalars(text(sql.speakers_elsewhere), known)
    found = shown | {str(json.loads(each)) for each in spoke}
    return here | (found - unheard if among is None else (found - unheard).intersection(among))


async def _sharers(
    connection: AsyncConnection, where: ColumnElement[bool], among: Collection[str] | None
) -> frozenset[str]:
    """Return the ids of those whose screens these notes are of. `among`: only these people."""
    wanted = select(notes.c.person_id).distinct().where(where, notes.c.person_id.is_not(None))
    found = frozenset(map(str, await connection.scalars(wanted)))
    return found if among is None else found.intersection(among)
