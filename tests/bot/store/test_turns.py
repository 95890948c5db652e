"""The database fulfils the contract of a turn store, for any words and whenever the process dies."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
import pytest_asyncio

from bot.store.claims import claim_room, fenced
from bot.store.database import Database, open_database
from bot.store.turns import SqlTurnStore
from compaction.errors import StoreError
from compaction.model import CompactionState, Note, NoteId, Seq, SessionId, Turn, TurnKind, TurnPart
from compaction.ports import Landing, TurnStore
from tests.bot.conftest import Place
from tests.bot.evening import forget
from tests.compaction.turn_store_contract import TurnStoreContract, fill, landing, note, segment, turn
from tests.fakes.clock import FakeClock

EVENING = SessionId("evening")


class TestSqlTurnStore(TurnStoreContract):
    """The database store of a room with the newest claim fulfils the same contract as the in-memory fake."""

    @pytest_asyncio.fixture
    async def store(self, place: Place) -> AsyncIterator[TurnStore]:
        async with open_database(place, synchronous="normal") as database:
            async with database.writing() as connection:
                claim = await claim_room(connection, 1)
            yield SqlTurnStore(fenced(database, claim), FakeClock())


async def test_everything_is_there_after_reopening(place: Place) -> None:
    """After reopening, the cursor, summary, window, segments and notes are the same."""
    path = place
    async with open_database(path) as database:
        store = SqlTurnStore(database, FakeClock())
        await fill(store, 12)
        for name in ("a", "b", "c"):
            await store.add_note(EVENING, note(name))
        await store.move_notes_to_pending(EVENING, [NoteId("a"), NoteId("b")])
        assert await store.land(landing(0, 10, revision=0, note_ids=["a"]))
        before = await store.load(EVENING)
    async with open_database(path) as database:
        assert await SqlTurnStore(database, FakeClock()).load(EVENING) == before
    assert before.state.cursor == 10
    assert [each.id for each in before.state.pending_notes] == ["b"]


async def test_two_processes_share_one_database(place: Place) -> None:
    """Two processes share the turns of a session, and a landing by one makes the other's landing stale."""
    path = place
    async with open_database(path) as first, open_database(path) as second:
        mine, theirs = SqlTurnStore(first, FakeClock()), SqlTurnStore(second, FakeClock())
        await fill(mine, 10)
        assert await theirs.land(landing(0, 10, revision=0))
        assert not await mine.land(landing(0, 10, revision=0))
        assert (await mine.load(EVENING)).state.cursor == 10


async def test_words_no_encoding_can_hold_are_stored(place: Place) -> None:
    """Lone surrogates and NUL are kept in turns; in notes and the summary a lone surrogate is replaced, on PostgreSQL
    NUL too.
    """
    strange = "half \ud83d emoji\x00"
    odd = Turn(Seq(0), TurnKind.SPEECH, 1.0, 2.0, (TurnPart("1", strange, strange),))
    async with open_database(place) as database:
        store = SqlTurnStore(database, FakeClock())
        await store.append_turn(EVENING, odd)
        await store.append_turn(EVENING, odd)
        await store.add_note(EVENING, Note(NoteId("n"), 1.0, strange, strange))
        state = CompactionState(revision=1, summary=strange)
        assert await store.land(Landing(EVENING, Seq(0), 0, segment(0, 0), state))
        memory = await store.load(EVENING)
    assert memory.window == (odd,)
    kept = "half � emoji\x00" if isinstance(place, Path) else "half � emoji�"
    assert memory.live_notes[0].what == kept
    assert memory.state.summary == kept


async def test_a_number_skipped_leaves_the_total_right(place: Place) -> None:
    """The number of turns is one more than the highest stored number, so the number of a lost turn is not
    used again.
    """
    async with open_database(place) as database:
        store = SqlTurnStore(database, FakeClock())
        await store.append_turn(EVENING, turn(0))
        await store.append_turn(EVENING, turn(2))
        memory = await store.load(EVENING)
    assert memory.total_turns == 3
    assert [each.seq for each in memory.window] == [0, 2]


async def test_a_turn_that_was_forgotten_meanwhile_may_be_stored_again(database: Database) -> None:
    """If storing a turn is repeated after it was forgotten, the call succeeds and the forgotten words are not stored
    again.
    """
    said = Turn(Seq(0), TurnKind.SPEECH, 1.0, 2.0, (TurnPart("1", "Ada", "Hello."), TurnPart("2", "Bo", "Hi.")))
    clock = FakeClock()
    store = SqlTurnStore(database, clock)
    for person, left in (("1", said.parts[1:]), ("2", ())):
        await store.append_turn(EVENING, said)
        await forget(database, clock, person)
        await store.append_turn(EVENING, said)
        assert (await store.load(EVENING)).window[0].parts == left
    with pytest.raises(StoreError):
        await store.append_turn(EVENING, replace(said, ended_at=3.0))
