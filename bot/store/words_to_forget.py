"""What is looked for when a person is forgotten: their words and names, and where and since when these may be.

Nothing said on one server is used on another, so only the servers are searched on which the person spoke or showed
something, and there nothing that is older than that. Whoever joins a server and says what everybody says can delete
nothing that the bot said there before, and nothing elsewhere. Sessions of no server, such as imported ones, may be of
any.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING

from sqlalchemy import func, or_, select

from bot.store.tables import notes, person_facts, sessions, turns
from compaction.memory.restating import NOTHING_FORGOTTEN, ForgottenWords

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from sqlalchemy import ColumnElement
    from sqlalchemy.ext.asyncio import AsyncConnection

    from compaction.model import SessionId

# The rooms of a server may have been on machines whose clocks differ, and a clock may have been set back.
_CLOCK_SLACK_S = 3600.0


@dataclass(frozen=True, slots=True)
class WordsToForget:
    """`servers`: when something of the person was first stored on each server, UTC epoch seconds. The key of sessions
    of no server is None.
    """

    words: ForgottenWords = NOTHING_FORGOTTEN
    servers: Mapping[int | None, float] = field(default_factory=dict)

    def together_with(self, other: WordsToForget) -> WordsToForget:
        """Return these words and others. It takes time for each word."""
        return WordsToForget(self.words.together_with(other.words), _earliest(self.servers, other.servers))

    def since(self, guild_id: int | None) -> float:
        """Return the time before which nothing said on a server tells of the person, UTC epoch seconds."""
        return -inf if guild_id is None else self.servers.get(guild_id, -inf) - _CLOCK_SLACK_S


async def servers_of_person(
    connection: AsyncConnection, person_id: str, among: Collection[SessionId] | None = None
) -> dict[int | None, float]:
    """Return when something of a person was first stored on each server. `among`: only these sessions."""
    theirs = turns.c.parts.contains(json.dumps(person_id), autoescape=True) & turns.c.tombstone.is_(False)
    found: list[dict[int | None, float]] = []
    for table, at, where in (
        (turns, turns.c.started_at, theirs),
        (notes, notes.c.at, notes.c.person_id == person_id),
        (person_facts, person_facts.c.at, person_facts.c.person_id == person_id),
    ):
        of_sessions = sessions.join(table, table.c.session_id == sessions.c.id)
        wanted = select(sessions.c.guild_id, func.min(at)).select_from(of_sessions).where(where)
        if among is not None:
            wanted = wanted.where(sessions.c.id.in_(list(among)))
        rows = (await connection.execute(wanted.group_by(sessions.c.guild_id))).all()
        found.append({row[0]: row[1] for row in rows})
    return _earliest(*found)


def of_servers(guild_ids: Iterable[int | None]) -> ColumnElement[bool]:
    """Return the condition that a session is of one of these servers or of none."""
    return or_(sessions.c.guild_id.is_(None), sessions.c.guild_id.in_([each for each in guild_ids if each is not None]))


def _earliest(*found: Mapping[int | None, float]) -> dict[int | None, float]:
    first: dict[int | None, float] = {}
    for servers in found:
        for guild_id, at in servers.items():
            first[guild_id] = min(at, first.get(guild_id, inf))
    return first
