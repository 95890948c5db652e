"""Reads stored sessions for one person: only what `bot.readers` lets them read, without withheld words.

The commands that show what was said read here. What people said who opted out, and what the bot said while it could
repeat them, is left out as it is from every prompt.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bot.readers import NOTHING, WHOLE, reading_of
from compaction.model import Seq
from compaction.withheld import WithheldPeople

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Iterable

    from bot.readers import Reader, Reading, Stay
    from bot.store.sessions import SessionBegin, Sessions, StoredSession
    from compaction.model import SessionId, Turn
    from compaction.ports import TurnStore

# So many turns of a session are read, the newest: two days of talk without a pause.
MOST_TURNS = 30_000
# So many sessions are looked through for the one that somebody types: those of a month, thirty a day.
MOST_SESSIONS = 1_000
_END = Seq(2**31 - 1)


@dataclass(frozen=True, slots=True)
class ReadSession:
    """A session as it may be told. `turns`: in order, without withheld parts, what the reader has not heard, and empty
    turns. `reading`: what the reader may read of it.

    `cut`: how many of its oldest turns are not in it, because they are too many or were deleted. `recorded`: all other
    turns as they are stored, only to see who was there and when. `clean`: leaves out of segments what may
    hold withheld words.
    """

    session: StoredSession
    turns: tuple[Turn, ...]
    recorded: tuple[Turn, ...]
    clean: WithheldPeople
    reading: Reading = WHOLE
    cut: int = 0


class SessionReader:
    """Reads the sessions of one database. `withheld`: returns the ids of the people of a guild who opted out.

    All methods raise `StoreError`.
    """

    def __init__(
        self, sessions: Sessions, turns: TurnStore, *, withheld: Callable[[int], Awaitable[frozenset[str]]]
    ) -> None:
        self._sessions = sessions
        self._turns = turns
        self.withheld = withheld

    async def readable(self, reader: Reader) -> tuple[SessionBegin, ...]:
        """Return the newest sessions of which somebody may read something, newest first."""
        return await self._sessions.begins_for(reader, limit=MOST_SESSIONS)

    async def find(
        self,
        reader: Reader,
        *,
        session_id: SessionId | None = None,
        nearest: Iterable[int] = (),
        catches_up: bool = False,
    ) -> StoredSession | None:
        """Return one such session: the one with this id, or the newest, in one of the `nearest` channels if possible.
        `catches_up`: see `reading_of`.

        None if there is none, and also if the person may read nothing of it.
        """
        if session_id is not None:
            found = await self._sessions.find(session_id)
            reading = (await self.readings(reader, [session_id], catches_up=catches_up)).get(session_id, NOTHING)
            return None if reading.is_nothing else found
        for channel_id in (*nearest, None):
            found = await self._sessions.newest_readable(reader, channel_id=channel_id, catches_up=catches_up)
            if found is not None:
                return found
        return None

    async def readings(
        self, reader: Reader, session_ids: Collection[SessionId], *, catches_up: bool = False
    ) -> dict[SessionId, Reading]:
        """Return what somebody may read of each of these sessions."""
        found = await self._sessions.attendance.of(session_ids, [reader.person_id])
        return {each: reading_of(reader, session, catches_up=catches_up) for each, session in found.items()}

    async def stays(self, session: StoredSession, reader: Reader) -> tuple[Stay, ...]:
        """Return when somebody was there, in order."""
        found = await self._sessions.attendance.of([session.id], [reader.person_id])
        return found[session.id].stays.get(reader.person_id, ()) if session.id in found else ()

    async def read(
        self, session: StoredSession, reader: Reader | None = None, *, catches_up: bool = False
    ) -> ReadSession:
        """Return the turns of a session that may be told. `reader`: None: to everybody in its channel, in which the bot
        posts it.
        """
        assert session.guild_id is not None, "only sessions of a guild are found"
        # There may be more by now than when the session was found.
        first = Seq(max(0, session.turn_count - MOST_TURNS))
        stored = await self._turns.turns(session.id, first, _END)
        # Asked after the turns were read, so that who opts out meanwhile is left out.
        hidden = await self.withheld(session.guild_id)
        quotable = await self._sessions.quotable(session.id, hidden)
        reading = WHOLE
        if reader is not None:
            reading = (await self.readings(reader, [session.id], catches_up=catches_up)).get(session.id, NOTHING)
        return await asyncio.to_thread(_readable, session, tuple(stored[-MOST_TURNS:]), hidden, quotable, reading)


def _readable(
    session: StoredSession,
    recorded: tuple[Turn, ...],
    hidden: frozenset[str],
    quotable: frozenset[str],
    reading: Reading,
) -> ReadSession:
    cut = recorded[0].seq if recorded else 0
    # Nobody knows who spoke in the turns that were not read.
    clean = WithheldPeople(quotable=hidden if cut else quotable)
    for turn in recorded:
        clean.note_turn(turn)
    clean.withhold(lambda: hidden)
    end = Seq(recorded[-1].seq + 1 if recorded else 0)
    clean.update(said_until=end, folded_until=end)
    allowed = (clean.turn(reading.turn(turn)) for turn in recorded)
    return ReadSession(session, tuple(turn for turn in allowed if turn.parts), recorded, clean, reading, cut)
