"""What is looked for when a person is forgotten: their words and names, and where these may be.

Nothing said on one server is used on another, so only the servers are searched on which something of the person is
stored: whoever says what everybody says can delete nothing that the bot said elsewhere. Sessions of no server, such as
imported ones, may be of any.

There is no bound in time: nobody knows when somebody first came. Their oldest turns may be deleted by their age while
answers that quote them stay, and who was there before the bot joined has no turn that says so.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import or_, select

from bot.store.speakers import may_have_part_of
from bot.store.tables import notes, person_facts, sessions, turns
from compaction.memory.restating import NOTHING_FORGOTTEN, ForgottenWords

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from sqlalchemy import ColumnElement
    from sqlalchemy.ext.asyncio import AsyncConnection

    from compaction.model import SessionId


@dataclass(frozen=True, slots=True)
class WordsToForget:
    """`servers`: where something of the person is stored. None stands for sessions of no server."""

    words: ForgottenWords = NOTHING_FORGOTTEN
    servers: frozenset[int | None] = frozenset()

    def together_with(self, other: WordsToForget) -> WordsToForget:
        """Return these words and others. It takes time for each word."""
        return WordsToForget(self.words.together_with(other.words), self.servers | other.servers)


async def servers_of_person(
    connection: AsyncConnection, person_id: str, among: Collection[SessionId] | None = None
) -> frozenset[int | None]:
    """Return the servers with something of a person. `among`: only in these sessions."""
    theirs = may_have_part_of(person_id) & turns.c.tombstone.is_(False)
    found: set[int | None] = set()
    for table, where in (
        (turns, theirs),
        (notes, notes.c.person_id == person_id),
        (person_facts, person_facts.c.person_id == person_id),
    ):
        of_sessions = sessions.join(table, table.c.session_id == sessions.c.id)
        wanted = select(sessions.c.guild_id).distinct().select_from(of_sessions).where(where)
        if among is not None:
            wanted = wanted.where(sessions.c.id.in_(list(among)))
        found.update((await connection.scalars(wanted)).all())
    return frozenset(found)


def of_servers(guild_ids: Iterable[int | None]) -> ColumnElement[bool]:
    """Return the condition that a session is of one of these servers or of none."""
    return or_(sessions.c.guild_id.is_(None), sessions.c.guild_id.in_([each for each in guild_ids if each is not None]))
