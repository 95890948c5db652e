"""Decides which hits of a search people may read or hear, by what `bot.readers` lets them read of the sessions.

A room may tell aloud of other sessions only what everybody present may read.

What was said in the room's own session is told to all who are there, as catching up does.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from bot.readers import WHOLE, reading_of
from compaction.memory.passage import PassageKind

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from bot.readers import Reader, Reading
    from bot.store.attendance import AttendanceStore
    from compaction.memory.recall import RecallHit
    from compaction.model import SessionId


class RoomAudience:
    """The people in one room. `readers`: returns who is there now. `session_id`: the room's own session.

    All methods raise `StoreError`.
    """

    def __init__(
        self, readers: Callable[[], Sequence[Reader]], attendance: AttendanceStore, session_id: SessionId
    ) -> None:
        self._readers = readers
        self._attendance = attendance
        self._session_id = session_id

    async def sessions(self) -> frozenset[SessionId] | None:
        """Return the sessions in which to search; None: all."""
        readers = self._readers()
        limited = [each for each in readers if not each.opened]
        if readers and not limited:
            return None
        people = [each.person_id for each in limited]
        guild_id = readers[0].guild_id if readers else 0
        attended = await self._attendance.attended_by_all(guild_id, people) if people else frozenset()
        return attended | {self._session_id}

    async def allowed(self, found: Sequence[RecallHit]) -> tuple[RecallHit, ...]:
        """Return the hits that everybody present may read. Nobody is told anything in an empty channel."""
        elsewhere = {hit.session_id for hit in found} - {self._session_id}
        readers = self._readers()
        sessions = await self._attendance.of(elsewhere, [each.person_id for each in readers]) if elsewhere else {}
        # Asked again: somebody may have come meanwhile, of whom no attendance was read.
        readers = self._readers()

        def readings_of(session_id: SessionId) -> Sequence[Reading]:
            if session_id == self._session_id:
                return [WHOLE]
            session = sessions.get(session_id)
            return [] if session is None else [reading_of(each, session) for each in readers]

        known = [hit for hit in found if readings_of(hit.session_id)]
        return readable_hits(known, readings_of)


def readable_hits(
    found: Sequence[RecallHit], readings_of: Callable[[SessionId], Sequence[Reading]]
) -> tuple[RecallHit, ...]:
    """Return the hits that may be read, with those of the turns around them that may. `readings_of`: returns what each
    of those who get to see them may read of a session.

    Nobody knows of a gist when the last turn was said that it is about, so it takes somebody who may read all.
    """
    read: list[RecallHit] = []
    for hit in found:
        readings = readings_of(hit.session_id)
        turns = tuple(turn for turn in hit.turns if all(reading.reads(turn) for reading in readings))
        match hit.kind:
            case PassageKind.TURN:
                may = any(turn.seq == hit.seq for turn in turns)
            case PassageKind.NOTE:
                may = all(reading.covers(hit.at, hit.at) for reading in readings)
            case PassageKind.SEGMENT:
                may = all(reading.is_whole for reading in readings)
        if may:
            read.append(replace(hit, turns=turns))
    return tuple(read)
