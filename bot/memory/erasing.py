"""Forgets a person in the database and in the logs.

`bot.store.forgetting` forgets in the database; this module adds the log files, which have ids, names, and with
`logs.speech` also words.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bot.log_files import forget_in_logs
from bot.store.forgetting import SpeechForgetter

if TYPE_CHECKING:
    from pathlib import Path

    from bot.clock import Clock
    from bot.store.database import Database
    from bot.store.forgetting import ForgetReport
    from bot.store.speakers import StoredSpeaker
    from compaction.model import SessionId


@dataclass(frozen=True, slots=True)
class ErasureReport:
    """What was forgotten in the database, and how many log lines changed."""

    stored: ForgetReport
    log_lines: int


class PersonEraser:
    """Forgets people. `log_folder`: the folder of the log files."""

    def __init__(self, database: Database, clock: Clock, *, log_folder: Path) -> None:
        self._forgetter = SpeechForgetter(database, clock)
        self._log_folder = log_folder

    async def find(self, name_or_id: str, *, session_id: SessionId | None = None) -> tuple[StoredSpeaker, ...]:
        """Return the speakers with that id or name, the latest speaker first. Raises `StoreError`."""
        return await self._forgetter.find(name_or_id, session_id=session_id)

    async def find_by_id(self, person_id: str) -> StoredSpeaker | None:
        """Return the speaker with that id, or None. Raises `StoreError`."""
        return await self._forgetter.find_by_id(person_id)

    async def erase(
        self, person: StoredSpeaker, *, session_id: SessionId | None = None, seq: int | None = None
    ) -> ErasureReport:
        """Forget what a person said: everywhere, in one session, or in one turn.

        Their id leaves the logs only if they are forgotten everywhere. Raises `StoreError`, and `OSError` for the logs.
        """
        words = await self._forgetter.words_of(person, session_id=session_id, seq=seq)
        stored = await self._forgetter.forget(person, session_id=session_id, seq=seq)
        person_id = person.id if session_id is None else None
        # In a thread: the files may have a hundred megabytes.
        lines = await asyncio.to_thread(forget_in_logs, self._log_folder, words, person_id=person_id)
        return ErasureReport(stored, lines)
