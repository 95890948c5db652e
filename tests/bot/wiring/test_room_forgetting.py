"""What is deleted of a person goes from all open rooms too, and what these have not stored yet does not come back."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast
from unittest.mock import Mock

import pytest

from bot.discord.commands.privacy import NOTHING_KEPT, forget_person
from bot.logs.log_file import log_path
from bot.memory.personal_data import PersonalData, PersonForgetter
from bot.participation.guild_state import GuildStates
from bot.server_settings import no_server_settings
from bot.wiring.rooms import RoomForgetting
from bot.words import SESSION
from compaction.errors import StaleOwnerError, StoreError
from compaction.model import Note, NoteId, SessionId, Turn, TurnKind, TurnPart
from tests.bot.evening import Evening
from tests.fakes.choices import guild_states

BO = "2"
SECRET = "The spare key hangs behind the walrus."


class ServersAway:
    """Settings of servers that cannot be read."""

    async def load(self) -> None:
        """Fail."""
        raise StoreError("The database is away.")


async def test_what_is_on_its_way_is_dropped_while_the_database_is_away() -> None:
    """Replies that may hold the words end, although nothing can be read again; the failure is raised."""
    guilds = guild_states()
    words = (await guilds.begin_session(1, "evening")).words
    posts = Mock()
    rooms = RoomForgetting(guilds, {}, cast("Any", ServersAway()), posts=posts)
    lease = words.lease({SESSION}, since=None)
    with pytest.raises(StoreError, match="away"):
        await rooms.after_forgetting([SessionId("evening")])
    assert (lease.valid, posts.wake.call_count) == (False, 1)


class RefusingStore:
    """Refuses the turns and notes of an evening while `error` is set."""

    def __init__(self, evening: Evening, monkeypatch: pytest.MonkeyPatch) -> None:
        self.error: Exception | None = StoreError("The disk is full.")
        self._append, self._note = evening.store.append_turn, evening.store.add_note
        monkeypatch.setattr(evening.store, "append_turn", self._append_turn)
        monkeypatch.setattr(evening.store, "add_note", self._add_note)

    async def _append_turn(self, session_id: SessionId, turn: Turn) -> Turn:
        if self.error is not None:
            raise self.error
        return await self._append(session_id, turn)

    async def _add_note(self, session_id: SessionId, note: Note) -> bool:
        if self.error is not None:
            raise self.error
        return await self._note(session_id, note)


def records_of(evening: Evening, folder: Path, guilds: GuildStates | None = None) -> PersonalData:
    """Return the personal data of a process with one open room: that of the evening. `guilds`: with it."""
    upkeeps = {evening.session_id: evening.upkeep}
    rooms = RoomForgetting(guilds or guild_states(), upkeeps, no_server_settings(), posts=Mock())
    forgetter = PersonForgetter(evening.database, evening.clock, log_folder=log_path(folder).parent)
    return PersonalData(evening.database, forgetter, evening.people, rooms=rooms)


async def test_words_that_wait_for_the_store_do_not_come_back(
    evening: Evening, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Turns and notes that the store has refused are stored before a person's words are deleted, so that they are
    deleted too. While it still refuses them, nobody is told that it is done, but what may repeat them ends at once: not
    what is made where they said nothing.
    """
    guilds = guild_states()
    here, elsewhere = [
        (await guilds.begin_session(number, session)).words.lease({SESSION}, since=None)
        for number, session in enumerate((evening.session_id, SessionId("elsewhere")))
    ]
    records = records_of(evening, tmp_path, guilds)
    now = evening.clock.now()
    hello = TurnPart(BO, "Bo", "Good evening.")
    await evening.timeline.append(TurnKind.SPEECH, (hello,), started_at=now, ended_at=now)
    store = RefusingStore(evening, monkeypatch)
    with pytest.raises(StoreError):
        await evening.timeline.append(
            TurnKind.SPEECH, (TurnPart(BO, "Bo", SECRET),), started_at=now, ended_at=now + 2.0
        )
    with pytest.raises(StoreError):
        await evening.timeline.add_note(Note(NoteId("n1"), now, "Bo", SECRET, person_id=BO))
    assert "The disk is full. Use /forget-me again" in await forget_person(records, BO)
    assert (here.valid, elsewhere.valid) == (False, True)
    assert len((await evening.store.load(evening.session_id)).window) == 1
    store.error = None
    assert "deleted 2 things that you said or did, 0 replies of mine, 1 note" in await forget_person(records, BO)
    await evening.timeline.store_queue.flush()
    stored = await evening.store.load(evening.session_id)
    assert (stored.total_turns, stored.live_notes) == (2, ())
    assert [turn.parts for turn in (*stored.window, *evening.timeline.window)] == [()] * 4


async def test_a_room_that_was_taken_over_keeps_nobody_from_being_forgotten(
    evening: Evening, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What waits there is never stored: another process has the session."""
    store = RefusingStore(evening, monkeypatch)
    store.error = StaleOwnerError("Another process has it.")
    with pytest.raises(StaleOwnerError):
        await evening.timeline.append(
            TurnKind.SPEECH, (TurnPart(BO, "Bo", SECRET),), started_at=1000.0, ended_at=1002.0
        )
    answer = await forget_person(records_of(evening, tmp_path), BO)
    assert answer.startswith(NOTHING_KEPT)
