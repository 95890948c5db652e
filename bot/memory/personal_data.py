"""Lets a person see everything that is kept of them, and have it forgotten, on all servers.

`bot.store.speech_forgetting` forgets in the database; this module adds the databases that restores have kept aside, the
log files, which have ids, and the open rooms. An attempt that was interrupted is finished by the next one: the database
lists where something was forgotten.
"""

from __future__ import annotations

import asyncio
import gzip
import json
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Protocol

import structlog

from bot.logs.log_file import forget_in_logs
from bot.store.kept_aside import delete_in_copies
from bot.store.personal_data import PersonalDataStore
from bot.store.speakers import StoredSpeaker
from bot.store.speech_forgetting import SpeechForgetter
from compaction.errors import StoreError
from compaction.log_events import MemoryEvent

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

    from bot.clock import Clock
    from bot.memory.people import PeopleBook
    from bot.store.database import Database
    from bot.store.session_forgetting import ForgetReport
    from compaction.model import SessionId

log = structlog.get_logger()

FILE_NAME = "roomtone-my-data.json"
# Discord takes ten megabytes from a bot. Longer files are compressed to about a fifth.
MOST_BYTES = 8_000_000
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
    """Forgets people. `log_folder`: the folder of the log files. `speech`: finds them, and forgets in the database."""

    def __init__(self, database: Database, clock: Clock, *, log_folder: Path) -> None:
        self._database = database
        self.speech = SpeechForgetter(database, clock)
        self._clock = clock
        self._log_folder = log_folder
        self._wiped_at = -inf

    async def forget(
        self,
        person: StoredSpeaker,
        *,
        session_id: SessionId | None = None,
        seq: int | None = None,
        changed: list[SessionId] | None = None,
    ) -> PersonForgetReport:
        """Forget what a person said: everywhere, in one session, or in one turn.

        Open rooms of all processes store nothing any more that they had of the person. Lines with their id leave the
        logs only if they are forgotten everywhere. `changed`: gets each session that has changed, also if the
        attempt fails later. Raises `StoreError`, and `OSError` for the logs: the same call then does what is left.
        """
        person = await self.speech.begin(person, session_id=session_id, seq=seq)
        stored = await self.speech.forget(person, session_id=session_id, seq=seq, changed=changed)
        await delete_in_copies(
            self._database, lambda copy: self._forget_in_copy(copy, person, session_id=session_id, seq=seq)
        )
        # In a thread: the files may have a hundred megabytes.
        lines = 0 if session_id is not None else await asyncio.to_thread(forget_in_logs, self._log_folder, person.id)
        # Whoever has said nothing must not hold up writers, nor use up the pause of those of whom something is deleted.
        has_deleted = bool(stored.sessions or stored.about or stored.rules or stored.prompts)
        return PersonForgetReport(stored, lines, has_deleted and await self._wipe())

    async def _forget_in_copy(
        self, copy: Database, person: StoredSpeaker, *, session_id: SessionId | None, seq: int | None
    ) -> bool:
        """Forget in a database that was kept aside. Returns whether it had something of the person."""
        speech = SpeechForgetter(copy, self._clock)
        done = await speech.forget(await speech.find_by_id(person.id) or person, session_id=session_id, seq=seq)
        return bool(done.sessions or done.about or done.rules or done.prompts)

    async def _wipe(self) -> bool:
        if self._clock.monotonic() - self._wiped_at < WIPE_PAUSE_S:
            return False
        self._wiped_at = self._clock.monotonic()
        try:
            return await self._database.wipe()
        except StoreError as error:
            log.warning(MemoryEvent.WIPE_FAILED, problem=error)
            return False


@dataclass(frozen=True, slots=True)
class DataFile:
    """A file for the person. `turn_count`: how many of their turns it has. `is_empty`: nothing is kept of them."""

    name: str
    content: bytes
    turn_count: int
    is_empty: bool


class OpenRooms(Protocol):
    """The open rooms of the process; `bot.wiring.rooms.RoomForgetting` implements it."""

    async def before_forgetting(self, person_id: str) -> None:
        """Drop what the person has said or shown that is not recorded yet, and store what the store has refused so far:
        it would come back later. Raises `StoreError` if something is refused again.
        """

    async def after_forgetting(self, sessions: Collection[SessionId]) -> None:
        """Read the memory of all open rooms again, and drop what is on its way to a model or to people in rooms with
        these sessions.
        """


class PersonalData:
    """Personal data in one database and its logs. `rooms`: the open rooms."""

    def __init__(self, database: Database, forgetter: PersonForgetter, people: PeopleBook, *, rooms: OpenRooms) -> None:
        self._store = PersonalDataStore(database)
        self._forgetter = forgetter
        self._people = people
        self._rooms = rooms
        # Reading and forgetting takes seconds of work for a long memory; anybody may ask for it, at any rate.
        self._one_at_a_time = asyncio.Lock()

    async def file_of(self, person_id: str) -> DataFile:
        """Return everything that is kept of a person as a file. Raises `StoreError`."""
        async with self._one_at_a_time:
            found = await self._store.of(person_id)
            return await asyncio.to_thread(_file, found)

    async def forget(self, person_id: str) -> PersonForgetReport:
        """Forget a person everywhere. Raises `StoreError`, and `OSError` for the log files; the next call then does
        what is left. The open rooms take over what has changed in either case.
        """
        changed: list[SessionId] = []
        await self._rooms.before_forgetting(person_id)
        async with self._one_at_a_time:
            # Somebody who never spoke may be in the logs.
            never_spoke = StoredSpeaker(person_id, (), 0.0, 0, ())
            person = await self._forgetter.speech.find_by_id(person_id) or never_spoke
            try:
                done = await self._forgetter.forget(person, changed=changed)
            finally:
                try:
                    await self._people.reload()
                finally:
                    await self._rooms.after_forgetting(changed)
        # Without the person's id, which would bring it back into the log.
        log.info(
            MemoryEvent.PERSON_FORGOTTEN,
            turns=done.stored.turns,
            answers=done.stored.answers,
            session_count=len(done.stored.sessions),
            log_lines=done.log_lines,
        )
        return done

    async def forget_facts(self, guild_id: int | None, person_id: str) -> int:
        """Delete the facts about a person on a server, and what rooms there have made of them; return how many there
        were. Raises `StoreError`.
        """
        done = await self._people.forget(guild_id, person_id)
        if done.sessions:
            await self._rooms.after_forgetting(done.sessions)
        return done.count


def _file(found: dict[str, object]) -> DataFile:
    sessions = found["sessions"]
    assert isinstance(sessions, list), "the store returns a list"
    count = sum(len(each["what_you_said"]) for each in sessions)
    empty = not any(value for key, value in found.items() if key != "person_id")
    content = json.dumps(found, indent=1, ensure_ascii=False).encode("utf-8", "replace")
    if len(content) > MOST_BYTES:
        return DataFile(f"{FILE_NAME}.gz", gzip.compress(content), count, empty)
    return DataFile(FILE_NAME, content, count, empty)
