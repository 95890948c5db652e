"""Lets a person see everything that is kept of them, and have it forgotten, on all servers."""

from __future__ import annotations

import asyncio
import gzip
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import structlog

from bot.store.personal_data import PersonalDataStore
from bot.store.speakers import StoredSpeaker

if TYPE_CHECKING:
    from collections.abc import Collection

    from bot.memory.people import PeopleBook
    from bot.memory.person_forgetting import PersonForgetReport, PersonForgetter
    from bot.store.database import Database
    from compaction.model import SessionId

log = structlog.get_logger()

FILE_NAME = "roomtone-my-data.json"
# Discord takes ten megabytes from a bot. Longer files are compressed to about a fifth.
_MOST_BYTES = 8_000_000


@dataclass(frozen=True, slots=True)
class DataFile:
    """A file for the person. `turn_count`: how many of their turns it has. `is_empty`: nothing is kept of them."""

    name: str
    content: bytes
    turn_count: int
    is_empty: bool


class RoomMemory(Protocol):
    """What one open room keeps of its session. `bot.memory.upkeep.MemoryUpkeep` implements it."""

    async def store_waiting(self) -> None:
        """Store what the store has refused so far, so that it can be deleted. Raises `StoreError`."""

    async def refresh(self) -> None:
        """Read the memory again, because words in it were deleted."""


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
        await self._rooms.before_forgetting(person_id)
        async with self._one_at_a_time:
            return await self._forget(person_id)

    async def _forget(self, person_id: str) -> PersonForgetReport:
        # Somebody who never spoke may be in the logs.
        person = await self._forgetter.find_by_id(person_id) or StoredSpeaker(person_id, (), 0.0, 0, ())
        changed: list[SessionId] = []
        try:
            done = await self._forgetter.forget(person, on_changed=changed.append)
        finally:
            try:
                await self._people.reload()
            finally:
                await self._rooms.after_forgetting(changed)
        # Without the person's id, which would bring it back into the log.
        log.info(
            "person_forgotten",
            turns=done.stored.turns,
            answers=done.stored.answers,
            session_count=len(done.stored.sessions),
            log_lines=done.log_lines,
        )
        return done


def _file(found: dict[str, object]) -> DataFile:
    sessions = found["sessions"]
    assert isinstance(sessions, list), "the store returns a list"
    count = sum(len(each["what_you_said"]) for each in sessions)
    empty = not any(value for key, value in found.items() if key != "person_id")
    content = json.dumps(found, indent=1, ensure_ascii=False).encode("utf-8", "replace")
    if len(content) > _MOST_BYTES:
        return DataFile(f"{FILE_NAME}.gz", gzip.compress(content), count, empty)
    return DataFile(FILE_NAME, content, count, empty)
