"""Notes that somebody was forgotten, so that open rooms and restored backups do not bring it back.

Who forgets may be another process than the one with the room: a command, or the bot of other shards. Before it deletes
anything it notes here whom it forgets. A room reads that in each transaction in which it stores a turn or a note of a
screen, and leaves out what it has heard and seen until then. So nothing comes in between, and the clocks of two
machines are never compared.

The list is kept, because a backup may be restored that knows nothing of it (`bot.store.backup`). It tells until when by
its order: all that was stored of somebody before a forgetting is forgotten.

Discord's ids can all be tried, so a plain hash would name people to whoever has the database or a backup. The list has
HMACs instead, and nothing that was made of words. The key is in a file of its own, which no backup holds. All processes
of one database need the same file.
"""

from __future__ import annotations

import hmac
import os
import secrets
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import insert, select, text

from bot.private_files import make_private_folder, open_private, sync_names
from bot.store.inserts import put_row
from bot.store.tables import forgettings, search_marks
from bot.texts.text import Text
from compaction.errors import StoreError
from compaction.model import Note, Seq, SessionId, Turn, TurnPart

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from pathlib import Path

    from sqlalchemy.ext.asyncio import AsyncConnection

    from bot.clock import Clock

# An open room takes a change over within this time (`bot.room.room_check.CHECK_ROOM_S`,
# `bot.room.watches.CHECK_FORGETTINGS_S`).
_TAKEN_OVER_S = 8.0
_NEWEST = "SELECT coalesce(max(number), 0) FROM forgettings"
KEY_FILE = "forgetting.key"
_KEY_BYTES = 32
_DIGEST_BYTES = 16
# The mark by which a database recognises its key.
_MARK = "forgetting_key"


class ForgettingKey:
    """The key in the file at `path`, which is made with mode 0600 at the first use."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._key: bytes | None = None

    def person(self, person_id: str) -> str:
        """Return what stands for a person. Raises `StoreError` if the file can be neither read nor made."""
        return self._digest("person", person_id)

    async def claim(self, connection: AsyncConnection) -> None:
        """Note, inside a write transaction, that this is the key of the database. Raises `StoreError` if another is."""
        if not await self.is_of(connection):
            raise StoreError(
                Text(
                    "{path} is not the key of this database. Copy the file {name} from the computer "
                    "where you made the database: it is in its data folder. Then start again.",
                    path=self.path,
                    name=KEY_FILE,
                )
            )
        await self.adopt(connection)

    async def is_of(self, connection: AsyncConnection) -> bool:
        """Return whether this key made the list of a database, or none has."""
        mark = await connection.scalar(select(search_marks.c.value).where(search_marks.c.name == _MARK))
        return mark in (None, self._mark())

    async def adopt(self, connection: AsyncConnection) -> None:
        """Make this the key of the database, inside a write transaction, whatever it was before."""
        await put_row(connection, search_marks, {"name": _MARK}, {"value": self._mark()})

    def _mark(self) -> int:
        return int(self._digest("key", "")[:8], 16)

    def _digest(self, kind: str, text: str) -> str:
        if self._key is None:
            self._key = _read_or_make(self.path)
        said = f"{kind}:{text}".encode("utf-8", "surrogatepass")
        return hmac.digest(self._key, said, "sha256")[:_DIGEST_BYTES].hex()


def _read_or_make(path: Path) -> bytes:
    try:
        make_private_folder(path.parent)
        # Another process may make it at the same time.
        with suppress(FileExistsError), open(path, "xb", opener=open_private) as file:
            file.write(secrets.token_bytes(_KEY_BYTES))
            file.flush()
            os.fsync(file.fileno())
            sync_names(path.parent)
        key = path.read_bytes()
    except OSError as error:
        raise StoreError(
            Text(
                "I can neither read nor make the key {path}: {reason}. Give the bot's user access to its data folder.",
                path=path,
                reason=error.strerror or type(error).__name__,
            )
        ) from error
    if len(key) != _KEY_BYTES:
        raise StoreError(Text("{path} is damaged: it must have 32 bytes. Restore a copy of it.", path=path))
    return key


@dataclass(frozen=True, slots=True)
class Forgetting:
    """That a person was forgotten: everywhere, in one session, or in one turn. `person`: the digest of their id."""

    number: int
    person: str
    session_id: SessionId | None
    seq: Seq | None

    def reaches(self, session_id: SessionId) -> bool:
        """Return whether words of this session were forgotten."""
        return self.session_id in (None, session_id)


async def record_forgetting(
    connection: AsyncConnection, key: ForgettingKey, person_id: str, *, session_id: SessionId | None, seq: int | None
) -> None:
    """Note, inside a write transaction, that a person is forgotten from now on. Raises `StoreError` for the key of
    another database.
    """
    await key.claim(connection)
    await connection.execute(
        insert(forgettings).values(
            number=await last_forgetting(connection) + 1,
            person=key.person(person_id),
            only_session=session_id,
            only_seq=seq,
        )
    )


async def last_forgetting(connection: AsyncConnection) -> int:
    """Return the number of the last forgetting; 0: there was none."""
    return int(await connection.scalar(text(_NEWEST)))


async def forgettings_after(connection: AsyncConnection, number: int) -> tuple[Forgetting, ...]:
    """Return the forgettings with higher numbers, in order."""
    wanted = select(forgettings).where(forgettings.c.number > number).order_by(forgettings.c.number)
    return tuple(
        Forgetting(
            row.number,
            row.person,
            None if row.only_session is None else SessionId(row.only_session),
            None if row.only_seq is None else Seq(row.only_seq),
        )
        for row in await connection.execute(wanted)
    )


class LearnedForgettings:
    """What one room has learned of forgettings, and when, by its own `clock`. Owned by the room's store of turns.
    `key`: that of the database.
    """

    def __init__(self, key: ForgettingKey, clock: Clock) -> None:
        self._key = key
        self._clock = clock
        # The number of the last forgetting that the room knows of; None: it has not asked yet.
        self._newest: int | None = None
        # When it learned that a person was forgotten, by the digest of their id, and where: everywhere, in one session,
        # or in one turn of it.
        self._learned: dict[tuple[str, SessionId | None, Seq | None], float] = {}

    async def learn(self, connection: AsyncConnection) -> None:
        """Take over what was forgotten since the last call, inside the transaction in which something is stored."""
        if self._newest is None:
            # What was forgotten before the room read its session, it has not read.
            self._newest = await last_forgetting(connection)
        for found in await forgettings_after(connection, self._newest):
            self._newest = found.number
            self._learned[found.person, found.session_id, found.seq] = self._clock.now()

    def left_of_turn(self, session_id: SessionId, turn: Turn) -> Turn:
        """Return the turn without what people began to say before the room learned that they were forgotten; without
        any words if it was told to such people, or may be about them.
        """
        if not self._learned:
            return turn
        made_at = turn.started_at - _TAKEN_OVER_S
        if any(self._has_forgotten(each, session_id, None, since=made_at) for each in (*turn.told_to, *turn.sources)):
            return turn.without_words()
        parts: list[TurnPart] = []
        for part in turn.parts:
            said = [
                each
                for each in part.as_utterances(turn.started_at)
                if not self._has_forgotten(part.speaker_id, session_id, turn.seq, since=each.began_at)
            ]
            if said:
                parts.append(TurnPart.spoken(part.speaker_id, part.speaker, said))
        return turn.with_parts(tuple(parts))

    def has_forgotten_note(self, session_id: SessionId, note: Note) -> bool:
        """Return whether the note shows the screen of a person who was forgotten after it was taken."""
        return note.person_id is not None and self._has_forgotten(note.person_id, session_id, None, since=note.at)

    def _has_forgotten(self, person_id: str, session_id: SessionId, seq: Seq | None, *, since: float) -> bool:
        """Return whether the room has learned that a person was forgotten there after `since` (UTC epoch seconds)."""
        person = self._key.person(person_id)
        places: list[tuple[SessionId | None, Seq | None]] = [(None, None), (session_id, None)]
        if seq is not None:
            places.append((session_id, seq))
        return any(since <= self._learned.get((person, *place), float("-inf")) for place in places)


def people_among(found: Iterable[Forgetting], ids: Collection[str], key: ForgettingKey) -> dict[str, list[Forgetting]]:
    """Return what was forgotten of which of these people, by their id. `key`: that of the database."""
    by_person: dict[str, list[Forgetting]] = {}
    for each in found:
        by_person.setdefault(each.person, []).append(each)
    return {person_id: by_person[digest] for person_id in ids if (digest := key.person(person_id)) in by_person}
