"""What a model or the bot told since a screen was shared goes with the notes of that screen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from bot.store.database import Database, open_database
from bot.store.quoted_turns import QuotedTurn, QuoteStore
from bot.store.turns import SqlTurnStore
from compaction.model import Fact, FactKind, Note, NoteId, Segment, Seq, SessionId, Turn
from tests.bot.conftest import Place
from tests.bot.evening import forget
from tests.compaction.turn_store_contract import EVENING, T0, bot_turn, landing, turn
from tests.fakes.clock import FakeClock

SCREEN = "The bank's page: balance 4,210 euros, overdraft 300 euros."
BANK = "The bank page on the shared screen shows 4,210 euros."
SAID = (
    turn(0, "Look at this.", speaker="Bob"),
    turn(1, "What is that?"),
    replace(bot_turn(2, "That page shows a balance of 4,210 euros."), answers=Seq(1)),
    turn(3, "I'm allergic to peanuts."),
    replace(bot_turn(4, "Noted, no peanuts for you."), answers=Seq(3)),
    *(turn(seq, "We meet at the old station.") for seq in range(5, 20)),
)


def told(text: str, seq: int) -> Fact:
    """Return a fact that a model wrote of something that Ada said in this turn."""
    return Fact((Seq(seq),), text, FactKind.LASTING, speaker="Ada", at=T0 + seq * 3.0, owner="Ada")


MEETING = told("They meet at the station.", 12)
FACTS = (replace(told(BANK, 1), note_id=NoteId("n1")), told("Ada is allergic to peanuts.", 3))


async def a_shared_screen(database: Database, session_id: SessionId = EVENING, *, note_at: float = T0) -> SqlTurnStore:
    """Store a session with two segments that tell of Bob's screen."""
    store = SqlTurnStore(database, FakeClock())
    for each in SAID:
        await store.append_turn(session_id, each)
    await store.add_note(session_id, Note(NoteId("n1"), note_at, "Bob", SCREEN, person_id="id-Bob"))
    await store.move_notes_to_pending(session_id, [NoteId("n1")])
    for revision, (start, facts, note_ids) in enumerate(((0, FACTS, ["n1"]), (10, (MEETING,), []))):
        land = landing(start, start + 10, revision=revision, session_id=session_id, note_ids=note_ids)
        assert land.segment is not None
        made = replace(land.segment, facts=facts, gist="Ada saw a page.", created_at=T0 + 500.0 + revision)
        assert await store.land(replace(land, segment=made))
    return store


def facts_of(segments: tuple[Segment, ...]) -> list[str]:
    """Return the texts of all facts that are left."""
    return [fact.text for each in segments for fact in each.facts if fact.text]


def told_of_bank(turns: Sequence[Turn]) -> list[int]:
    """Return the turns that name the balance."""
    return [each.seq for each in turns for part in each.parts if "4,210" in part.text]


async def test_forgetting_who_shared_forgets_what_the_screen_showed(place: Place) -> None:
    """A fact that was made of a note of the person's screen goes, and so does all that the bot said since then. What
    others said stays.
    """
    async with open_database(place) as database:
        store = await a_shared_screen(database)
        done = await forget(database, FakeClock(), "Bob")
        after = await store.load(EVENING)
        turns = await store.turns(EVENING, Seq(0), Seq(20))
    assert (done.notes, done.facts, done.answers) == (1, 1, 2)
    assert facts_of(after.segments) == ["Ada is allergic to peanuts.", "They meet at the station."]
    assert told_of_bank(turns) == []
    assert [each.seq for each in turns if each.tombstone] == [0, 2, 4]


async def test_a_screen_counts_from_when_it_was_noted(file: Path) -> None:
    """Somebody who shares a screen and says nothing is forgotten from then on."""
    async with open_database(file) as database:
        store = await a_shared_screen(database, note_at=T0 + 7.0)
        shown = Note(NoteId("n2"), T0 + 10.0, "Cy", SCREEN, person_id="id-Cy")
        await store.add_note(EVENING, shown)
        done = await forget(database, FakeClock(), "id-Cy")
        turns = await store.turns(EVENING, Seq(0), Seq(20))
    assert (done.notes, done.turns) == (1, 0)
    assert [each.seq for each in turns if each.tombstone] == [4]


async def test_other_sessions_forget_what_the_screen_showed(place: Place) -> None:
    """The bot may have read it out again on another evening, from when on it was quoted there."""
    later = SessionId("later")
    async with open_database(place) as database:
        store = await a_shared_screen(database)
        for each in (bot_turn(0, "Hello."), turn(1, "What did we see?"), bot_turn(2, "A balance of 4,210 euros.")):
            await store.append_turn(later, each)
        await QuoteStore(database).store({QuotedTurn(later, 2, EVENING, None)})
        assert set((await forget(database, FakeClock(), "Bob")).sessions) == {EVENING, later}
        turns = await store.turns(later, Seq(0), Seq(3))
    assert [each.seq for each in turns if each.tombstone] == [2]
