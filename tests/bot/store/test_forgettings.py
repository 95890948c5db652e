"""What an open room has not stored yet does not come back after another process has forgotten a person."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC
from pathlib import Path

import pytest
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from bot.logs.log_file import log_path
from bot.memory.personal_data import PersonForgetter
from bot.memory.retention import DAY_S, Retention
from bot.store.database import Database, open_database
from bot.store.forgettings import (
    LearnedForgettings,
    record_forgetting,
)
from bot.store.speakers import StoredSpeaker
from bot.store.tables import forgettings
from compaction.errors import StoreError
from compaction.model import Note, NoteId, Seq, SessionId, Turn, TurnKind, TurnPart, UtteredWords
from compaction.settings import TierSettings
from tests.bot.conftest import Place
from tests.bot.evening import Evening
from tests.fakes.clock import FakeClock

EVENING, OTHER = SessionId("evening"), SessionId("other")
HOUR_S = 3_600.0
SECRET = "My boat is moored behind the old lighthouse at Wickhamq."
ADA = "id-Ada"
# A turn of two people. The room learns at 100.0 that Ada was forgotten.
SHARED = (
    TurnPart.spoken("id-Bob", "Bob", [UtteredWords(99.0, "One.", 2.0)]),
    TurnPart.spoken(ADA, "Ada", [UtteredWords(99.5, "Two.", 1.0), UtteredWords(100.5, "Three.", 2.0)]),
)


@asynccontextmanager
async def another_process(place: Place, evening: Evening, folder: Path) -> AsyncIterator[PersonForgetter]:
    """Open the evening's database again, as `roomtone memory forget` does."""
    async with open_database(place, synchronous="normal") as database:
        yield PersonForgetter(database, evening.clock, log_folder=log_path(folder).parent)


def refuse_writes(evening: Evening, monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Let the room's database refuse writes until this is undone: the disk is full, or it is away."""

    async def full(_: AsyncConnection) -> None:
        raise StoreError("The disk is full.")

    monkeypatch.setattr(evening.database, "writing", evening.database.checked(full).writing)
    return monkeypatch


async def say_unstored(evening: Evening, text: str, speaker: str, kind: TurnKind = TurnKind.SPEECH) -> None:
    """Let somebody say something that the store refuses."""
    with pytest.raises(StoreError, match="full"):
        await evening.say(text, speaker, kind=kind)


async def test_what_waits_in_an_open_room_does_not_come_back(
    evening: Evening, place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Turns, notes and replies that the database refused while somebody spoke are stored without what they had of the
    person, who was forgotten by another process meanwhile. What others said is there, and the room's memory and the
    next prompt have nothing of the person either.
    """
    async with another_process(place, evening, tmp_path) as forgetter:
        await evening.say("Good evening.")
        outage = refuse_writes(evening, monkeypatch)
        await say_unstored(evening, SECRET, "Ada")
        await say_unstored(evening, "The gate code is 4411.", "Bob")
        await say_unstored(evening, "So it is at Wickhamq.", "Bot", TurnKind.ASSISTANT)
        with pytest.raises(StoreError, match="full"):
            await evening.timeline.add_note(
                Note(NoteId("n1"), evening.clock.now(), "Ada", "A map of Wickhamq.", person_id="id-Ada")
            )
        with pytest.raises(StoreError, match="full"):
            await evening.timeline.add_note(
                Note(NoteId("n2"), evening.clock.now(), "Bob", "A gate.", person_id="id-Bob")
            )
        (ada,) = await forgetter.speech.find("Ada")
        await forgetter.forget(ada)
        outage.undo()
        await evening.timeline.store_queue.flush()
        await evening.upkeep.run_once()
        stored = await evening.store.load(EVENING)
        said = [[part.text for part in each.parts] for each in stored.window]
        assert said == [[], [], ["The gate code is 4411."], []]
        assert [each.id for each in stored.live_notes] == ["n2"]
        assert "Wickhamq" not in f"{evening.timeline.turns} {evening.timeline.live_notes}"
        sent = evening.asks(await evening.say("Well?", "Bob"), zone=UTC)
        assert "Wickhamq" not in str(sent.parts)


async def test_nothing_of_the_person_had_been_stored_yet(
    evening: Evening, place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All they ever said and showed waits in an open room when they use /forget-me at another shard, which finds
    nothing of them. Neither that nor the reply to it is stored.
    """
    async with another_process(place, evening, tmp_path) as forgetter:
        await evening.say("Good evening.", "Bob")
        outage = refuse_writes(evening, monkeypatch)
        await say_unstored(evening, SECRET, "Ada")
        await say_unstored(evening, "So it is at Wickhamq.", "Bot", TurnKind.ASSISTANT)
        with pytest.raises(StoreError, match="full"):
            await evening.timeline.add_note(
                Note(NoteId("n1"), evening.clock.now(), "Ada", "A map of Wickhamq.", person_id="id-Ada")
            )
        assert (await forgetter.forget(StoredSpeaker("id-Ada", (), 0.0, 0, ()))).stored.sessions == ()
        outage.undo()
        await evening.timeline.store_queue.flush()
        stored = await evening.store.load(EVENING)
        assert [[part.text for part in each.parts] for each in stored.window] == [["Good evening."], [], []]
        assert stored.live_notes == ()
        assert "Wickhamq" not in f"{evening.timeline.turns} {evening.timeline.live_notes}"


async def test_what_is_recorded_later_was_said_before(file: Path, tmp_path: Path) -> None:
    """Speech that had no text yet, and a note of a picture of then, are left out: of the store, and at once of the
    memory. What the person says and shows once the room has learned of it is kept.
    """
    async with Evening(file) as evening, another_process(file, evening, tmp_path) as forgetter:
        await evening.say("Good evening.")
        spoken_at = evening.clock.now()
        (ada,) = await forgetter.speech.find("Ada")
        await forgetter.forget(ada)
        evening.clock.advance(3.0)
        part = TurnPart("id-Ada", "Ada", SECRET)
        turn = await evening.timeline.append(TurnKind.SPEECH, (part,), started_at=spoken_at, ended_at=spoken_at + 2.0)
        assert turn.tombstone
        await evening.timeline.add_note(Note(NoteId("n1"), spoken_at, "Ada", "A map of Wickhamq.", person_id="id-Ada"))
        assert "Wickhamq" not in f"{evening.timeline.turns} {evening.timeline.live_notes}"
        await evening.say("I am still here.")
        await evening.timeline.add_note(Note(NoteId("n2"), evening.clock.now(), "Ada", "A cat.", person_id="id-Ada"))
        stored = await evening.store.load(EVENING)
        assert [[each.text for each in turn.parts] for turn in stored.window] == [[], [], ["I am still here."]]
        assert [each.id for each in stored.live_notes] == ["n2"]
        assert "Wickhamq" not in str(evening.timeline.turns)


async def test_a_session_that_began_after_the_person_was_looked_up_is_forgotten_too(
    evening: Evening, place: Place, tmp_path: Path
) -> None:
    """The owner takes their time to confirm, and meanwhile the person speaks in another channel."""
    async with another_process(place, evening, tmp_path) as forgetter:
        await evening.say("Good evening.")
        (ada,) = await forgetter.speech.find("Ada")
        async with Evening(place, name="other", clock=evening.clock, channel=702) as other:
            await other.say(SECRET)
            assert set((await forgetter.forget(ada)).stored.sessions) == {EVENING, OTHER}
            assert (await other.store.load(OTHER)).window[0].parts == ()


@pytest.mark.parametrize("ahead_s", [-HOUR_S, HOUR_S])
async def test_a_reply_is_left_out_whatever_the_clock_of_who_forgets_says(
    file: Path, tmp_path: Path, ahead_s: float
) -> None:
    """Another machine forgets the person, and its clock is wrong. The reply that was made of their words is stored
    without its text, and the reply to a later question with it.
    """
    async with Evening(file) as evening, open_database(file, synchronous="normal") as database:
        clock = FakeClock(evening.clock.now() + ahead_s)
        forgetter = PersonForgetter(database, clock, log_folder=log_path(tmp_path).parent)
        await evening.say(SECRET)
        await evening.say("Where is it moored?", "Bob")
        (ada,) = await forgetter.speech.find("Ada")
        await forgetter.forget(ada)
        await evening.say("Behind the old lighthouse.", "Bot", kind=TurnKind.ASSISTANT)
        await evening.upkeep.run_once()
        evening.clock.advance(30.0)
        await evening.say("What time is it?", "Bob")
        await evening.say("It is nine.", "Bot", kind=TurnKind.ASSISTANT)
        stored = (await evening.store.load(EVENING)).window
        texts = [[part.text for part in turn.parts] for turn in stored]
        assert texts == [[], ["Where is it moored?"], [], ["What time is it?"], ["It is nine."]]


async def note_of(database: Database, session_id: SessionId | None = None, seq: int | None = None) -> None:
    """Note that Ada is forgotten."""
    async with database.writing() as connection:
        await record_forgetting(connection, database.key, ADA, session_id=session_id, seq=seq)


@pytest.mark.parametrize(
    ("where", "seq", "gone"),
    [
        (None, None, {(EVENING, 0), (EVENING, 1), (OTHER, 0), (EVENING, "note"), (OTHER, "note")}),
        (EVENING, None, {(EVENING, 0), (EVENING, 1), (EVENING, "note")}),
        (EVENING, 1, {(EVENING, 1)}),
    ],
)
async def test_only_what_was_to_be_forgotten_is_left_out(
    file: Path, where: SessionId | None, seq: int | None, gone: set[tuple[SessionId, int | str]]
) -> None:
    """Everywhere, in one session, or in one turn; of Ada alone, and not what she says later in the same turn. What the
    bot told her, and what may be about her, goes where all of hers does.
    """
    async with open_database(file) as database:
        learned = LearnedForgettings(database.key, FakeClock(100.0))
        async with database.reading() as connection:
            await learned.learn(connection)
        await note_of(database, where, seq)
        async with database.reading() as connection:
            await learned.learn(connection)
    found: set[tuple[SessionId, int | str]] = set()
    for session_id in (EVENING, OTHER):
        for number in (0, 1) if session_id == EVENING else (0,):
            turn = Turn(Seq(number), TurnKind.SPEECH, 99.0, 102.0, SHARED)
            left = learned.left_of_turn(session_id, turn)
            if left is not turn:
                found.add((session_id, number))
            assert left.parts == (SHARED if left is turn else (SHARED[0], TurnPart(ADA, "Ada", "Three.", 2.0)))
        shown = Note(NoteId("n"), 99.0, "Ada", "x", person_id=ADA)
        if learned.has_forgotten_note(session_id, shown):
            found.add((session_id, "note"))
        for told_to, about in (((ADA,), ()), ((), (ADA,))):
            reply = Turn(Seq(9), TurnKind.ASSISTANT, 99.0, 102.0, SHARED[:1], told_to=told_to, sources=about)
            assert learned.left_of_turn(session_id, reply).tombstone is learned.has_forgotten_note(session_id, shown)
        assert not learned.has_forgotten_note(session_id, replace(shown, at=101.0))
        assert not learned.has_forgotten_note(session_id, replace(shown, person_id="id-Bob"))
    assert found == gone


async def test_the_list_is_kept_and_has_nothing_of_the_person(file: Path) -> None:
    """A backup may be restored that knows nothing of it. The rows have digests, and no number is given twice."""
    clock = FakeClock()
    async with Evening(file, clock=clock) as evening:
        for seq in (None, 1):
            async with evening.database.writing() as connection:
                await record_forgetting(connection, evening.database.key, ADA, session_id=EVENING, seq=seq)
        clock.advance(1_000 * DAY_S)
        await Retention(evening.database, TierSettings(), clock=clock).enforce()
        async with evening.database.reading() as connection:
            rows = (await connection.execute(select(forgettings))).all()
        assert [row.number for row in rows] == [1, 2]
        assert "Ada" not in str(rows)


@pytest.mark.parametrize("ahead_s", [-1000 * HOUR_S, -2 * HOUR_S, 0.0, 2 * HOUR_S, 1000 * HOUR_S])
async def test_no_clock_loses_what_an_open_room_does_not_know_yet(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ahead_s: float
) -> None:
    """The clock of who forgets is wrong. Other people are forgotten, old notes are deleted and another room begins
    before the room stores what it has.
    """
    async with Evening(file) as evening, open_database(file, synchronous="normal") as database:
        await evening.say("Good evening.")
        outage = refuse_writes(evening, monkeypatch)
        await say_unstored(evening, SECRET, "Ada")
        clock = FakeClock(evening.clock.now() + ahead_s)
        forgetter = PersonForgetter(database, clock, log_folder=log_path(tmp_path).parent)
        (ada,) = await forgetter.speech.find("Ada")
        await forgetter.forget(ada)
        async with Evening(file, name="other", clock=evening.clock, channel=702):
            await forgetter.forget(StoredSpeaker("id-Bob", (), 0.0, 0, ()))
            await Retention(database, TierSettings(retention_days=0), clock=clock).enforce()
            outage.undo()
            await evening.timeline.store_queue.flush()
        stored = await evening.store.load(EVENING)
    assert [[part.text for part in each.parts] for each in stored.window] == [[], []]
