"""Rows that are damaged, or that a newer Roomtone wrote, keep nobody's words from being forgotten or from ageing, no
session from going on, and nothing else from being found.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import delete, func, insert, select, update
from structlog.testing import capture_logs

from bot.memory.recall import Recall
from bot.memory.retention import DAY_S, Retention
from bot.store import rows
from bot.store.ageing import delete_aged
from bot.store.database import open_database
from bot.store.each_session import write_each
from bot.store.personal_data import PersonalDataStore
from bot.store.rows import UnreadableRowError
from bot.store.search.indexing import catch_up
from bot.store.search.search import SqlRecallIndex
from bot.store.search.vector_store import VectorStore
from bot.store.speech_forgetting import SpeechForgetter
from bot.store.tables import metadata, notes, passages, person_facts, segments, tier_opt_outs, turns
from bot.texts.text import in_language, sentence_of
from compaction.errors import StoreError
from compaction.model import Note, NoteId, Seq, SessionId, TurnKind, TurnPart
from compaction.settings import TierSettings
from tests.bot.evening import Evening
from tests.bot.store.test_speech_forgetting import bytes_on_disk
from tests.fakes.clock import FakeClock

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from sqlalchemy import ColumnElement, Table
    from sqlalchemy.ext.asyncio import AsyncConnection

    from bot.store.database import Database
    from tests.bot.conftest import Place

T0 = 1_000.0
SECRET = "My boat is moored behind the old lighthouse at Wickhamq."
# A turn that holds the secret, in a form that no version of Roomtone reads.
BROKEN_PARTS = json.dumps([["id-Ada", "Ada", SECRET]])[:-2]

DAMAGES: tuple[tuple[Table, dict[str, object]], ...] = (
    (turns, {"parts": "[["}),
    (turns, {"parts": '{"id-Bob": "Hello."}'}),
    (turns, {"parts": '[["id-Bob", "Bob"]]'}),
    (turns, {"parts": '[["id-Bob", "Bob", null]]'}),
    (turns, {"parts": "[" * 100_000}),
    (turns, {"parts": '[[1, "Bob", "Hello."]]'}),
    (turns, {"parts": '[["id-Bob", {}, "Hello."]]'}),
    (turns, {"parts": '["id-Bob"]'}),
    (turns, {"kind": "gesture"}),
    (segments, {"facts": "[{]"}),
    (segments, {"facts": '["a fact"]'}),
    (segments, {"facts": "null"}),
    (segments, {"facts": '[{"turns": [], "kind": "other"}]'}),
    (segments, {"note_ids": "["}),
    (segments, {"note_ids": "[1]"}),
)

# One of each sort, for the tests that take two databases.
SORTS = (DAMAGES[0], DAMAGES[8], DAMAGES[9], DAMAGES[13])


async def damage(database: Database, table: Table, values: dict[str, object], *where: ColumnElement[bool]) -> None:
    """Store these values in one or all rows of a table."""
    async with database.writing() as connection:
        changed = await connection.execute(update(table).where(*where).values(values))
    assert changed.rowcount > 0


async def words_in(database: Database, *, besides: str = "forgotten") -> str:
    """Return the text of all rows."""
    found: list[str] = []
    async with database.reading() as connection:
        for table in metadata.sorted_tables:
            if not table.name.startswith(besides):
                found += map(str, (await connection.execute(select(table))).all())
    return "\n".join(found).casefold()


READ: dict[str, Callable[[Any], object]] = {
    "turns": rows.turn_from_row,
    "segments": rows.segment_from_row,
    "notes": rows.note_from_row,
}


@pytest.mark.asyncio
@pytest.mark.parametrize(("table", "values"), [*DAMAGES, (notes, {"source": "a dream"})])
async def test_a_row_that_cannot_be_read_is_a_sentence(tmp_path: Path, table: Table, values: dict[str, object]) -> None:
    """The error is one of the store. It names the session and says what to do, in the reader's language, and does not
    quote the row.
    """
    async with Evening(tmp_path / "a.db") as evening:
        await evening.memory.add_note(Note(NoteId("n1"), T0, "Bob", "A cat."))
        await evening.talk(65)
        await damage(evening.database, table, values)
        async with evening.database.reading() as connection:
            row = (await connection.execute(select(table).limit(1))).one()
        with pytest.raises(UnreadableRowError, match=r"in session evening cannot be read.*Update Roomtone") as caught:
            READ[table.name](row)
        assert isinstance(caught.value, StoreError)
        assert caught.value.__cause__ is None
        assert "in der Sitzung evening ist nicht lesbar" in in_language(sentence_of(caught.value), "de")


@pytest.mark.asyncio
@pytest.mark.parametrize(("table", "values"), SORTS)
async def test_an_unreadable_row_elsewhere_stops_no_forgetting(
    place: Place, table: Table, values: dict[str, object]
) -> None:
    """A person is forgotten everywhere although another session cannot be read. That session stays as it is."""
    async with Evening(place, name="a-damaged") as damaged:
        await damaged.say("The gate code is 4411.", "Bob")
        await damaged.talk_of_bob(65)
        await damage(damaged.database, table, values, table.c.session_id == damaged.session_id)
        async with Evening(place, name="own", clock=damaged.clock, channel=702) as own:
            await own.say(SECRET)
            await own.talk_of_bob(65)
            async with Evening(place, name="telling", clock=damaged.clock, channel=703) as telling:
                await telling.say(f"Somebody said: {SECRET}", "Bot", kind=TurnKind.ASSISTANT)
        forgetting = SpeechForgetter(damaged.database, damaged.clock)
        ada = await forgetting.find_by_id("id-Ada")
        assert ada is not None
        done = await forgetting.forget(ada)
        assert set(done.sessions) == {SessionId("own"), SessionId("telling")}
        assert "wickhamq" not in await words_in(damaged.database)
        async with damaged.database.reading() as connection:
            here = table.c.session_id == damaged.session_id
            left = (await connection.execute(select(table).where(here))).mappings().all()
        assert all(row[key] == value for row in left for key, value in values.items())


@pytest.mark.asyncio
@pytest.mark.parametrize(("table", "values"), DAMAGES)
async def test_a_session_of_the_person_that_cannot_be_read_loses_their_words(
    tmp_path: Path, table: Table, values: dict[str, object]
) -> None:
    """No byte of the person's words stays in a session of theirs in which rows cannot be read, and afterwards the store
    can read it, unless a turn is of a kind that it does not know.
    """
    async with Evening(tmp_path / "a.db") as evening:
        await evening.say(SECRET)
        await evening.talk_of_bob(65)
        await damage(evening.database, table, values, *((turns.c.seq == 1,) if table is turns else ()))
        forgetting = SpeechForgetter(evening.database, evening.clock)
        ada = await forgetting.find_by_id("id-Ada")
        assert ada is not None
        assert (await forgetting.forget(ada)).sessions == (evening.session_id,)
        assert b"wickhamq" not in bytes_on_disk(tmp_path).lower()
        assert await forgetting.find_by_id("id-Ada") is None
        if "kind" not in values:
            stored = await evening.store.load(evening.session_id)
            assert stored.total_turns == 66
            assert "Ada" not in stored.segments[0].gist
            assert stored.state.summary


@pytest.mark.asyncio
async def test_a_turn_that_cannot_be_read_goes_with_whoever_is_in_it(tmp_path: Path) -> None:
    """Somebody who is only in a turn that cannot be read is found by id, and the turn loses all its words, with the
    facts of its segment that cannot be read. The turns of others in the session stay.
    """
    async with Evening(tmp_path / "a.db") as evening:
        await evening.say(SECRET)
        await evening.talk_of_bob(65)
        await damage(evening.database, turns, {"parts": BROKEN_PARTS}, turns.c.seq == 0)
        async with evening.database.reading() as connection:
            segment = (await connection.execute(select(segments))).first()
        assert segment is not None
        facts = json.loads(segment.facts)
        facts[0] = {"text": SECRET}
        facts[1]["kind"] = "a newer one"
        await damage(evening.database, segments, {"facts": json.dumps(facts)}, segments.c.id == segment.id)
        forgetting = SpeechForgetter(evening.database, evening.clock)
        assert [each.id for each in await forgetting.find("Bob")] == ["id-Bob"]
        ada = await forgetting.find_by_id("id-Ada")
        assert ada is not None
        assert (ada.names, ada.sessions) == ((), (evening.session_id,))
        assert (await forgetting.forget(ada)).sessions == (evening.session_id,)
        assert b"wickhamq" not in bytes_on_disk(tmp_path).lower()
        stored = await evening.store.load(evening.session_id)
        assert len(stored.segments[0].facts) == len(facts)
        assert stored.segments[0].facts[1].text == facts[1]["text"]
        said = await evening.store.turns(evening.session_id, Seq(0), Seq(3))
        assert [turn.tombstone for turn in said] == [True, False, False]


async def flip(database: Database, column: ColumnElement[str], before: str, *where: ColumnElement[bool]) -> None:
    """Change one bit of the first letter of `before` in a SQLite database, as a failing disk does."""
    name, table = column.name, column.table.name
    async with database.writing() as connection:
        found = (await connection.execute(select(column).where(*where))).scalar_one()
        first, rest = found.encode().split(before.encode())
        broken = first + bytes([before.encode()[0] | 0x80]) + before.encode()[1:] + rest
        await connection.exec_driver_sql(
            f"UPDATE {table} SET {name} = CAST(? AS TEXT) WHERE {name} = ?",
            (broken, found),
        )


@pytest.mark.asyncio
async def test_a_flipped_bit_in_what_somebody_said_stops_nothing(tmp_path: Path) -> None:
    """A text that is no UTF-8 any more is a turn that cannot be read: its session opens with the others, and everybody
    can be forgotten.
    """
    path = tmp_path / "a.db"
    async with Evening(path, name="damaged") as damaged:
        await damaged.say("The gate code is 4411.", "Bob")
        await damaged.talk_of_bob(3)
        async with Evening(path, name="own", clock=damaged.clock, channel=702) as own:
            await own.say(SECRET)
        await flip(damaged.database, turns.c.parts, "gate", turns.c.session_id == "damaged", turns.c.seq == 0)
        with capture_logs() as logs:
            stored = await damaged.store.load(damaged.session_id)
        assert [turn.seq for turn in stored.window if turn.parts] == [1, 2, 3]
        (told,) = [each for each in logs if each["event"] == "stored_rows_unreadable"]
        assert told["turns"] == 1
        forgetting = SpeechForgetter(damaged.database, damaged.clock)
        (ada,) = await forgetting.find("Ada")
        assert (await forgetting.forget(ada)).sessions == (SessionId("own"),)
        assert b"wickhamq" not in bytes_on_disk(tmp_path).lower()


@pytest.mark.asyncio
async def test_a_turn_goes_although_a_bit_of_its_speakers_id_is_flipped(tmp_path: Path) -> None:
    """Nobody knows whose it was, so it goes with everybody in the session. What is not JSON is read with a sign in the
    place of the lost letter.
    """
    async with Evening(tmp_path / "a.db") as evening:
        await evening.memory.add_note(Note(NoteId("n1"), T0, "Bob", "A cat."))
        await evening.say(SECRET)
        await evening.say("Good night.")
        await flip(evening.database, turns.c.parts, "id-Ada", turns.c.seq == 0)
        await flip(evening.database, notes.c.what, "cat", notes.c.id == "n1")
        stored = await evening.store.load(evening.session_id)
        assert [note.what for note in stored.live_notes] == ["A \N{REPLACEMENT CHARACTER}at."]
        forgetting = SpeechForgetter(evening.database, evening.clock)
        (ada,) = await forgetting.find("Ada")
        await forgetting.forget(ada)
        assert b"wickhamq" not in bytes_on_disk(tmp_path).lower()


@pytest.mark.asyncio
async def test_what_an_unreadable_row_tells_of_a_person_is_found_as_text(place: Place) -> None:
    """A turn or segment that cannot be read is searched as plain text, also for names that JSON escapes."""
    async with Evening(place, name="own") as own:
        await own.say("Hello.", "Jürgen")
        for name, channel in (("turn", 702), ("segment", 703), ("kind", 704)):
            async with Evening(place, name=name, clock=own.clock, channel=channel) as other:
                reply = TurnPart("assistant", "Roomtone", "As Jürgen says, hello.")
                at = own.clock.now()
                await other.memory.append(TurnKind.ASSISTANT, (reply,), started_at=at, ended_at=at)
                await other.talk_of_bob(65)
                here = turns.c.session_id == name
                if name == "turn":
                    await damage(own.database, turns, {"parts": turns.c.parts + "]"}, here, turns.c.seq == 0)
                elif name == "kind":
                    await damage(own.database, turns, {"kind": "hologram"}, here, turns.c.seq == 0)
                else:
                    await damage(own.database, turns, {"parts": "[]", "tombstone": True}, here, turns.c.seq == 0)
                    told = '[{"text": "J\\u00fcrgen says hello."}'
                    await damage(own.database, segments, {"facts": told, "gist": ""}, segments.c.session_id == name)
        forgetting = SpeechForgetter(own.database, own.clock)
        (person,) = await forgetting.find("Jürgen")
        done = await forgetting.forget(person)
        assert set(done.sessions) == {SessionId(name) for name in ("own", "turn", "segment", "kind")}
        left = await words_in(own.database)
        assert "jürgen" not in left
        assert "fcrgen" not in left


@pytest.mark.asyncio
async def test_facts_drawn_from_what_cannot_be_read_go_too(place: Place) -> None:
    """Nobody can tell whose words a fact about somebody else was made of, if its source cannot be read."""
    async with Evening(place) as evening:
        await evening.say(SECRET)
        await evening.talk_of_bob(65)
        await damage(evening.database, segments, {"facts": "["})
        async with evening.database.writing() as connection:
            first = await connection.scalar(select(segments.c.id).order_by(segments.c.start_seq))
            values = {"session_id": evening.session_id, "turn_seq": 3, "person_id": "id-Bob", "name": "Bob", "at": T0}
            for name in (f"{first}#0", "other#0"):
                await connection.execute(insert(person_facts).values({**values, "id": name, "text": "Likes tea."}))
        forgetting = SpeechForgetter(evening.database, evening.clock)
        (ada,) = await forgetting.find("Ada")
        await forgetting.forget(ada)
        async with evening.database.reading() as connection:
            assert (await connection.scalars(select(person_facts.c.id))).all() == ["other#0"]


@pytest.mark.asyncio
@pytest.mark.parametrize(("table", "values"), SORTS)
async def test_what_is_old_goes_although_rows_cannot_be_read(
    place: Place, table: Table, values: dict[str, object]
) -> None:
    """Retention takes old words out of all sessions, also out of the one with rows that cannot be read."""
    clock = FakeClock()
    async with Evening(place, name="a-damaged", clock=clock) as damaged:
        async with Evening(place, name="other", clock=clock, channel=702) as other:
            for each in (damaged, other):
                await each.memory.add_note(Note(NoteId("map"), clock.now(), "Ada", "A map of Wickhamq."))
                await each.memory.retire_live_notes()
                await each.say(SECRET)
                await each.talk_of_bob(10)
            clock.advance(31 * DAY_S)
            for each in (damaged, other):
                await each.talk_of_bob(60)
            await damage(damaged.database, table, values, table.c.session_id == damaged.session_id)
            in_use = {damaged.session_id, other.session_id}
            retention = Retention(damaged.database, TierSettings(), clock=clock, in_use=in_use)
            done = await retention.enforce()
        assert set(done.shortened) == in_use
        assert "wickhamq" not in await words_in(damaged.database)


@pytest.mark.asyncio
async def test_an_archived_segment_that_cannot_be_read_is_pruned(place: Place) -> None:
    """Its facts go by column, with those of all others, and it stays in the index with what is left."""
    async with Evening(place) as evening:
        await evening.talk(65)
        first, *_ = await evening.tier_store.tiers_of(evening.session_id)
        await evening.tier_store.archive(evening.session_id, [first.kept.segment.id], now=T0)
        await damage(evening.database, segments, {"note_ids": "[", "facts": "["})
        settings = TierSettings(prune_after_days=1)
        evening.clock.advance(2 * DAY_S)
        assert (await Retention(evening.database, settings, clock=evening.clock).enforce()).pruned == 1


@pytest.mark.asyncio
async def test_a_person_gets_their_data_although_rows_cannot_be_read(place: Place) -> None:
    """What can be read is in the file."""
    async with Evening(place) as evening:
        await evening.say(SECRET)
        await evening.say("It is.", "Bot", kind=TurnKind.ASSISTANT)
        await damage(evening.database, turns, {"parts": "["}, turns.c.seq == 1)
        told = await PersonalDataStore(evening.database).of("id-Ada")
        assert SECRET in str(told["sessions"])


async def note_opt_out(connection: AsyncConnection, session_id: SessionId) -> SessionId:
    """Write something for a session; the second one fails."""
    await connection.execute(insert(tier_opt_outs).values(scope="session", name=session_id))
    if session_id == "two":
        raise StoreError("It is slow.")
    return session_id


@pytest.mark.asyncio
async def test_a_session_that_fails_stops_no_other(place: Place) -> None:
    """The work goes on with the next session, what the failed one wrote is undone, and its failure is returned."""
    done: list[SessionId] = []
    async with Evening(place) as evening:
        names = [SessionId(name) for name in ("one", "two", "three")]
        outcome = await write_each(evening.database, names, note_opt_out, on_done=done.append)
        assert outcome.results == tuple(done) == (SessionId("one"), SessionId("three"))
        assert str(outcome.failure) == "It is slow."
        async with evening.database.reading() as connection:
            assert await connection.scalar(select(func.count()).select_from(tier_opt_outs)) == 2


@pytest.mark.asyncio
async def test_a_database_that_is_away_is_asked_once(place: Place) -> None:
    """If the database takes no writes any more, the other sessions are not tried, each with a long wait."""
    tried: list[SessionId] = []

    async def work(connection: AsyncConnection, session_id: SessionId) -> None:
        tried.append(session_id)
        raise StoreError("It is slow.")

    async def refuse(connection: AsyncConnection) -> None:
        if tried:
            raise StoreError("It is away.")

    async with Evening(place) as evening:
        with pytest.raises(StoreError, match="It is away"):
            await write_each(evening.database.checked(refuse), map(SessionId, ("one", "two")), work)
    assert tried == ["one"]


@pytest.mark.asyncio
async def test_the_failure_of_one_session_is_raised_when_the_others_are_done(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ageing and forgetting tell of a session that failed, after all others have lost the words."""
    clock = FakeClock()
    async with Evening(place, name="a-slow", clock=clock) as slow:
        await slow.say(SECRET)
        async with Evening(place, name="other", clock=clock, channel=702) as other:
            await other.say(SECRET.replace("Wickhamq", "Ostendq"))
        rerender = "rerender_summary"

        async def fails(connection: AsyncConnection, session_id: SessionId, *, now: float) -> None:
            if session_id == slow.session_id:
                raise StoreError("It is slow.")

        for module in ("ageing", "speech_forgetting", "session_forgetting"):
            monkeypatch.setattr(f"bot.store.{module}.{rerender}", fails)
        aged = await delete_aged(slow.database, before=clock.now() + DAY_S, now=clock.now())
        assert (aged.results, str(aged.failure)) == (("other",), "It is slow.")
        with pytest.raises(StoreError, match="It is slow"):
            await Retention(
                slow.database, TierSettings(), clock=FakeClock(clock.now() + 40 * DAY_S), in_use=(slow.session_id,)
            ).enforce()
        assert "ostendq" not in await words_in(slow.database)
        assert "wickhamq" in await words_in(slow.database)
        async with Evening(place, name="third", clock=clock, channel=703) as third:
            await third.say(SECRET.replace("Wickhamq", "Hazelq"))
        forgetting = SpeechForgetter(slow.database, clock)
        (ada,) = await forgetting.find("Ada")
        with pytest.raises(StoreError, match="It is slow"):
            await forgetting.forget(ada)
        left = await words_in(slow.database)
        assert "hazelq" not in left
        assert "wickhamq" in left


@pytest.mark.asyncio
@pytest.mark.parametrize(("table", "values"), [*DAMAGES])
async def test_a_session_with_an_unreadable_row_goes_on(place: Place, table: Table, values: dict[str, object]) -> None:
    """It opens with what can be read, folds, and ends, and the log names the rows once. They stay as they are."""
    async with Evening(place) as before:
        await before.memory.add_note(Note(NoteId("n1"), T0, "Bob", "A cat."))
        await before.talk(65)
    where = {turns: turns.c.seq == 64, notes: notes.c.id == "n1"}
    async with open_database(place) as database:
        await damage(database, table, values, *([where[table]] if table in where else []))
    with capture_logs() as logs:
        async with Evening(place) as evening:
            assert [turn.seq for turn in evening.memory.turns][-1] == 64
            assert evening.memory.total_turns == 65
            assert evening.memory.summary is not None
            await evening.talk(20)
            await evening.memory.refresh()
            await evening.upkeep.run_once()
            assert evening.memory.cursor >= 20
            await evening.memory.end()
            stored = await evening.store.load(evening.session_id)
            async with evening.database.reading() as connection:
                left = (await connection.execute(select(table))).mappings().all()
    assert stored.ended
    assert any(all(row[key] == value for key, value in values.items()) for row in left)
    told = [each for each in logs if each["event"] == "stored_rows_unreadable"]
    readable = "kind" in values
    assert len(told) == (not readable)
    assert readable or table.name in told[0]
    assert not [each for each in logs if each["event"] in ("memory_upkeep_failed", "memory_upkeep_broke")]


@pytest.mark.asyncio
@pytest.mark.parametrize(("table", "values"), SORTS)
async def test_what_can_be_read_is_found_beside_what_cannot(
    place: Place, table: Table, values: dict[str, object]
) -> None:
    """The index is brought up to date, and a search returns the turns of which nothing is damaged."""
    async with Evening(place) as evening:
        await evening.talk(65)
        await evening.say("The ferry to Ostend leaves at nine.", "Bob")
        await damage(evening.database, table, values, *((turns.c.seq.in_((64, 3)),) if table is turns else ()))
        async with evening.database.writing() as connection:
            await connection.execute(delete(passages))
        assert await catch_up(evening.database) > 60
        recall = Recall(SqlRecallIndex(evening.database, VectorStore(evening.database)), evening.store)
        found = await recall.search("When does the ferry to Ostend leave?")
        assert "ferry" in str(found[0])
