"""Who has spoken, read from the stored turns: each person's names, sessions, and number of turns."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

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


async def read_speakers(connection: AsyncConnection, wanted: Select[Any]) -> dict[str, StoredSpeaker]:
    """Return who said a part of the rows of `turns` that `wanted` selects, by their id."""
    return await asyncio.to_thread(_speakers_of, (await connection.execute(wanted)).all())


def _speakers_of(stored: Iterable[Any]) -> dict[str, StoredSpeaker]:
    found: dict[str, StoredSpeaker] = {}
    for row in stored:
        for speaker_id, speaker, _ in json.loads(row.parts):
            before = found.get(speaker_id) or StoredSpeaker(speaker_id, (), 0.0, 0, ())
            found[speaker_id] = StoredSpeaker(
                speaker_id,
                tuple(dict.fromkeys((speaker, *before.names))),
                max(before.last_at, row.started_at),
                before.turn_count + 1,
                tuple(dict.fromkeys((*before.sessions, SessionId(row.session_id)))),
            )
    return found
