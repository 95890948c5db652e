"""Who has spoken, read from the stored turns: each person's names, sessions, and number of turns."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bot.store.rows import UNREADABLE, parts_of
from compaction.model import SessionId

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sqlalchemy import Select
    from sqlalchemy.ext.asyncio import AsyncConnection


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
