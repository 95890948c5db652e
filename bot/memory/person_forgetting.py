"""Forgets a person in the database and in the logs.

`bot.store.speech_forgetting` forgets in the database; this module adds the log files, which have ids, names, and with
`logs.speech` also words.

An attempt that was interrupted has taken some of the words out of the store already, and they are needed to find the
rest: quotations, log lines. So they are kept in memory until the person, who is told to try again, has succeeded.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from bot.logs.removal import forget_in_logs
from bot.store.speech_forgetting import SpeechForgetter
from bot.store.wiping import WIPE_PAUSE_S
from bot.store.words_to_forget import WordsToForget

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from bot.clock import Clock
    from bot.store.database import Database
    from bot.store.forget_report import ForgetReport
    from bot.store.speakers import StoredSpeaker
    from compaction.model import SessionId

# What is to be forgotten: a person, and the session and turn if it is only there.
Wanted: TypeAlias = "tuple[str, SessionId | None, int | None]"

# Failed attempts of which the words are kept. Those of somebody who has spoken for months have some megabytes.
MOST_UNFINISHED = 20


@dataclass(frozen=True, slots=True)
class PersonForgetReport:
    """What was forgotten in the database, and how many log lines changed."""

    stored: ForgetReport
    log_lines: int


class PersonForgetter:
    """Forgets people. `log_folder`: the folder of the log files. `wipe_pause_s`: see `SpeechForgetter`."""

    def __init__(
        self, database: Database, clock: Clock, *, log_folder: Path, wipe_pause_s: float = WIPE_PAUSE_S
    ) -> None:
        self._forgetter = SpeechForgetter(database, clock, wipe_pause_s=wipe_pause_s)
        self._log_folder = log_folder
        # The words of the attempts that failed, the latest last.
        self._unfinished: dict[Wanted, WordsToForget] = {}

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

        Open rooms of all processes store nothing any more that they had of the person. Their id leaves the logs only if
        they are forgotten everywhere. `on_changed`: gets each session that has changed, also if the attempt fails
        later. Raises `StoreError`, and `OSError` for the logs: the same call then does what is left.
        """
        wanted = (person.id, session_id, seq)
        person = await self._forgetter.begin(person, session_id=session_id, seq=seq)
        words = await self._words_to_forget(person, wanted)
        stored = await self._forgetter.forget(
            person, session_id=session_id, seq=seq, words=words, on_changed=on_changed
        )
        person_id = person.id if session_id is None else None
        # In a thread: the files may have a hundred megabytes.
        lines = await asyncio.to_thread(forget_in_logs, self._log_folder, words.words, person_id=person_id)
        self._unfinished.pop(wanted, None)
        return PersonForgetReport(stored, lines)

    async def _words_to_forget(self, person: StoredSpeaker, wanted: Wanted) -> WordsToForget:
        """Return the words to forget, with those of an earlier attempt that failed, and keep them for the next one."""
        _, session_id, seq = wanted
        stored = await self._forgetter.words_to_forget(person, session_id=session_id, seq=seq)
        known = self._unfinished.pop(wanted, WordsToForget())
        words = await asyncio.to_thread(known.together_with, stored)
        self._unfinished[wanted] = words
        while len(self._unfinished) > MOST_UNFINISHED:
            del self._unfinished[next(iter(self._unfinished))]
        return words
