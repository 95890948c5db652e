"""Forgets a person in the database and in the logs.

`bot.store.speech_forgetting` forgets in the database; this module adds the log files, which have ids. An attempt that
was interrupted is finished by the next one: the database lists where something was forgotten.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING

import structlog

from bot.logs.removal import forget_in_logs
from bot.store.speech_forgetting import SpeechForgetter
from compaction.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from bot.clock import Clock
    from bot.store.database import Database
    from bot.store.session_forgetting import ForgetReport
    from bot.store.speakers import StoredSpeaker
    from compaction.model import SessionId


log = structlog.get_logger()

# A wipe writes the database anew, and writers wait meanwhile. Anybody may have themselves forgotten, so it is done once
# in this time for all together.
WIPE_PAUSE_S = 900.0


@dataclass(frozen=True, slots=True)
class PersonForgetReport:
    """What was forgotten in the database, how many log lines were removed, and whether no byte of it is left in the
    database's files. If some may be, retention removes them within a day.
    """

    stored: ForgetReport
    log_lines: int
    wiped: bool = True


class PersonForgetter:
    """Forgets people. `log_folder`: the folder of the log files."""

    def __init__(self, database: Database, clock: Clock, *, log_folder: Path) -> None:
        self._database = database
        self._forgetter = SpeechForgetter(database, clock)
        self._clock = clock
        self._log_folder = log_folder
        self._wiped_at = -inf

    async def find(self, name_or_id: str, *, session_id: SessionId | None = None) -> tuple[StoredSpeaker, ...]:
        """Return the speakers with that id or name, the latest speaker first. Raises `StoreError`."""
        return await self._forgetter.find(name_or_id, session_id=session_id)

    async def find_by_id(self, person_id: str) -> StoredSpeaker | None:
        """Return the speaker with that id, or None. Raises `StoreError`."""
        return await self._forgetter.find_by_id(person_id)

    async def forget(
        self,
        person: StoredSpeaker,
        *,
        session_id: SessionId | None = None,
        seq: int | None = None,
        on_changed: Callable[[SessionId], object] = lambda _: None,
    ) -> PersonForgetReport:
        """Forget what a person said: everywhere, in one session, or in one turn.

        Open rooms of all processes store nothing any more that they had of the person. Lines with their id leave the
        logs only if they are forgotten everywhere. `on_changed`: gets each session that has changed, also if the
        attempt fails later. Raises `StoreError`, and `OSError` for the logs: the same call then does what is left.
        """
        person = await self._forgetter.begin(person, session_id=session_id, seq=seq)
        stored = await self._forgetter.forget(person, session_id=session_id, seq=seq, on_changed=on_changed)
        # In a thread: the files may have a hundred megabytes.
        lines = 0 if session_id is not None else await asyncio.to_thread(forget_in_logs, self._log_folder, person.id)
        # Whoever has said nothing must not hold up writers, nor use up the pause of those of whom something is deleted.
        has_deleted = bool(stored.sessions or stored.about or stored.rules)
        return PersonForgetReport(stored, lines, has_deleted and await self._wipe())

    async def _wipe(self) -> bool:
        if self._clock.monotonic() - self._wiped_at < WIPE_PAUSE_S:
            return False
        self._wiped_at = self._clock.monotonic()
        try:
            return await self._database.wipe()
        except StoreError as error:
            log.warning("wipe_failed", problem=error)
            return False
