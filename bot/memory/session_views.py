"""Reads stored sessions for one person: only what `bot.viewers` lets them read, without withheld words.

The commands that show what was said read here. What people said who opted out, and what the bot said while it could
repeat them, is left out as it is from every prompt.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bot.viewers import NOTHING, WHOLE, Stay, Viewer, Viewing, viewing_of
from compaction.model import Seq, SessionId, Turn
from compaction.withheld import WithheldPeople

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Iterable

    from bot.store.sessions import SessionBegin, Sessions, StoredSession
    from compaction.ports import TurnStore

# So many turns of a session are read, the newest: two days of talk without a pause.
MOST_TURNS = 30_000
# So many sessions are looked through for the one that somebody types: those of a month, thirty a day.
MOST_SESSIONS = 1_000
_END = Seq(2**31 - 1)


@dataclass(frozen=True, slots=True)
class SessionView:
    """A session as it may be told. `turns`: in order, without withheld parts, what the viewer has not heard, and empty
    turns. `viewing`: what the viewer may read of it.

    `cut`: how many of its oldest turns are not in it, because they are too many or were deleted. `recorded`: all other
    turns as they are stored, only to see who was there and when. `clean`: leaves out of segments what may
    hold withheld words.
    """

    session: StoredSession
    turns: tuple[Turn, ...]
    recorded: tuple[Turn, ...]
    clean: WithheldPeople
    viewing: Viewing = WHOLE
    cut: int = 0


class SessionViews:
    """Reads the sessions of one database. `withheld`: returns the ids of the people of a guild who opted out.

    All methods raise `StoreError`.
    """

    def __init__(
        self, sessions: Sessions, turns: TurnStore, *, withheld: Callable[[int], Awaitable[frozenset[str]]]
    ) -> None:
        self._sessions = sessions
        self._attendance = sessions.attendance
        self._turns = turns
        self.withheld = withheld

    async def readable(self, viewer: Viewer) -> tuple[SessionBegin, ...]:
        """Return the newest sessions of which somebody may read something, newest first."""
        return await self._sessions.begins_for(viewer, limit=MOST_SESSIONS)

    async def find(
        self,
        viewer: Viewer,
        *,
        session_id: SessionId | None = None,
        nearest: Iterable[int] = (),
        catches_up: bool = False,
    ) -> StoredSession | None:
        """Return one such session: the one with this id, or the newest, in one of the `nearest` channels if possible.
        `catches_up`: see `viewing_of`.

        None if there is none, and also if the person may read nothing of it.
        """
        if session_id is not None:
            found = await self._sessions.find(session_id)
            viewing = (await self.viewings(viewer, [session_id], catches_up=catches_up)).get(session_id, NOTHING)
            return None if viewing.is_nothing else found
        for channel_id in (*nearest, None):
            found = await self._sessions.newest_readable(viewer, channel_id=channel_id, catches_up=catches_up)
            if found is not None:
                return found
        return None

    async def viewings(
        self, viewer: Viewer, session_ids: Collection[SessionId], *, catches_up: bool = False
    ) -> dict[SessionId, Viewing]:
        """Return what somebody may read of each of these sessions."""
        found = await self._attendance.of(session_ids, [viewer.person_id])
        return {each: viewing_of(viewer, session, catches_up=catches_up) for each, session in found.items()}

    async def stays(self, session: StoredSession, viewer: Viewer) -> tuple[Stay, ...]:
        """Return when somebody was there, in order."""
        found = await self._attendance.of([session.id], [viewer.person_id])
        return found[session.id].stays.get(viewer.person_id, ()) if session.id in found else ()

    async def read(
        self, session: StoredSession, viewer: Viewer | None = None, *, catches_up: bool = False
    ) -> SessionView:
        """Return the turns of a session that may be told. `viewer`: None: to everybody in its channel, in which the bot
        posts it.
        """
        assert session.guild_id is not None, "only sessions of a guild are found"
        # There may be more by now than when the session was found.
        first = Seq(max(0, session.turn_count - MOST_TURNS))
        stored = await self._turns.turns(session.id, first, _END)
        # Asked after the turns were read, so that who opts out meanwhile is left out.
        hidden = await self.withheld(session.guild_id)
        quotable = await self._sessions.quotable(session.id, hidden)
        viewing = WHOLE
        if viewer is not None:
            viewing = (await self.viewings(viewer, [session.id], catches_up=catches_up)).get(session.id, NOTHING)
        return await asyncio.to_thread(_readable, session, tuple(stored[-MOST_TURNS:]), hidden, quotable, viewing)


def _readable(
    session: StoredSession,
    recorded: tuple[Turn, ...],
    hidden: frozenset[str],
    quotable: frozenset[str],
    viewing: Viewing,
) -> SessionView:
    cut = recorded[0].seq if recorded else 0
    # Nobody knows who spoke in the turns that were not read.
    clean = WithheldPeople(quotable=hidden if cut else quotable)
    for turn in recorded:
        clean.note_turn(turn)
    clean.withhold(lambda: hidden)
    end = Seq(recorded[-1].seq + 1 if recorded else 0)
    clean.update(said_until=end, folded_until=end)
    allowed = (clean.turn(viewing.turn(turn)) for turn in recorded)
    return SessionView(session, tuple(turn for turn in allowed if turn.parts), recorded, clean, viewing, cut)
