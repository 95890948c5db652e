"""Forgetting a person removes their words everywhere: turns, segments, notes, summaries, search, history
and the file.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import SecretStr
from sqlalchemy import insert

from bot.memory.recall import Recall
from bot.store import rows
from bot.store.claims import claim_room, fenced
from bot.store.database import Database
from bot.store.forgettings import last_forgetting
from bot.store.search.search import SqlRecallIndex
from bot.store.search.vector_store import VectorStore
from bot.store.session_forgetting import ForgetReport
from bot.store.speakers import StoredSpeaker
from bot.store.speech_forgetting import SpeechForgetter
from bot.store.tables import person_facts, turns
from compaction.memory.passage import Scope
from compaction.model import Note, NoteId, Seq, SessionId, Turn, TurnKind, TurnPart
from compaction.payload import PartKind, make_part
from compaction.summary.port import NOTHING_KEPT
from tests.bot.conftest import Place
from tests.bot.evening import GUILD, Evening, forget

SECRET = "Zanzibar"


async def an_evening(evening: Evening) -> None:
    """Fill a session in which Ada mentions a secret in several ways and others talk; a part is folded, compressed and
    archived.
    """
    await evening.say(f"I live in {SECRET}.", "Ada")
    await evening.say("The gate code is 4411.", "Bob")
    await evening.say(f"My boat is called {SECRET}na.", "Ada")
    evening.clock.advance(4.0)
    at = evening.clock.now()
    both = (TurnPart("id-Bob", "Bob", "We leave at nine."), TurnPart("id-Ada", "Ada", f"To {SECRET}!"))
    await evening.timeline.append(TurnKind.SPEECH, both, started_at=at, ended_at=at + 2.0)
    await evening.timeline.add_note(Note(NoteId("map"), at, "Ada", f"A map of {SECRET}.", person_id="id-Ada"))
    await evening.timeline.add_note(Note(NoteId("cat"), at, "Bob", "A picture of a cat.", person_id="id-Bob"))
    await evening.timeline.retire_live_notes()
    await evening.talk(70)
    await evening.upkeep.run_once()
    first, *_ = await evening.tier_store.tiers_of(evening.session_id)
    await evening.tier_store.archive(evening.session_id, [first.kept.segment.id], now=at)
    await evening.say(f"I still love {SECRET}.", "Ada")


def bytes_on_disk(folder: Path) -> bytes:
    """Return all bytes of the database and its journal."""
    return b"".join(path.read_bytes() for path in sorted(folder.iterdir()))


async def is_somebody_forgotten(database: Database) -> bool:
    async with database.reading() as connection:
        return await last_forgetting(connection) > 0


async def test_everything_a_person_said_is_gone(evening: Evening) -> None:
    """A person's words are gone from turns, segments, facts and the search. The words of others and all turn numbers
    stay.
    """
    await an_evening(evening)
    before = await evening.store.load(evening.session_id)
    assert any(SECRET in fact.text for segment in before.segments for fact in segment.facts)
    forgetting = SpeechForgetter(evening.database, evening.clock)
    (ada,) = await forgetting.find("ada")
    assert (ada.id, ada.names, ada.sessions) == ("id-Ada", ("Ada",), (evening.session_id,))
    done = await forgetting.forget(ada)
    assert done.turns == ada.turn_count
    assert done.facts > 0
    assert (done.notes, done.about, done.sessions) == (1, 0, (evening.session_id,))

    after = await evening.store.load(evening.session_id)
    assert after.total_turns == before.total_turns
    assert [segment.id for segment in after.segments] == [segment.id for segment in before.segments]
    assert after.state.revision == before.state.revision + 1
    turns = await evening.store.turns(evening.session_id, Seq(0), Seq(after.total_turns))
    assert [turn.seq for turn in turns] == list(range(after.total_turns))
    assert not any(part.speaker_id == "id-Ada" for turn in turns for part in turn.parts)
    assert [turn.tombstone for turn in turns[:4]] == [True, False, True, False]
    assert [part.text for part in turns[3].parts] == ["We leave at nine."]
    assert after.state.summary is not None
    assert "4411" in after.state.summary
    for segment in after.segments:
        assert "Ada" not in {fact.speaker for fact in segment.facts}
        assert SECRET not in f"{segment.heading} {segment.gist}"
        assert "map" not in segment.note_ids
    assert await evening.people.facts_about(GUILD, "id-Ada") == ()
    recall = Recall(SqlRecallIndex(evening.database, VectorStore(evening.database)), evening.store)
    assert not [each for each in await recall.search(SECRET, Scope(archived=True)) if SECRET in each.text]
    assert any("4411" in each.text for each in await recall.search("gate code"))
    assert await forgetting.find("ada") == ()


def quote(evening: Evening, session_id: SessionId, seq: int) -> None:
    """Let a prompt quote a turn of another session."""
    evening.upkeep.on_payload_sent([make_part("user", PartKind.RECALL, "…", refs=(f"turn:{session_id}#{seq}",))])


async def tombstones(evening: Evening) -> list[int]:
    """Return the turns of a session without words."""
    stored = await evening.store.turns(evening.session_id, Seq(0), Seq(999))
    return [turn.seq for turn in stored if turn.tombstone]


async def test_what_the_bot_says_from_their_first_turn_on_goes(evening: Evening) -> None:
    """Whatever it says: nobody compares words. What it said before, and what others say, stays. Facts, gists and
    paragraphs of these turns go with them, and the next fold writes the summary anew.
    """
    await evening.say("Bot, what time is it?", "Bob")
    await answer(evening, "It is nine.")
    await evening.say(f"My boat is called {SECRET}.", "Ada")
    await answer(evening, "A fine name.")
    await evening.say("Bot, will it rain?", "Bob")
    await answer(evening, "It will.")
    await evening.talk_of_bob(75)
    done = await forget(evening.database, evening.clock, "Ada")
    assert (done.turns, done.answers) == (1, 2)
    assert await tombstones(evening) == [2, 3, 5]
    stored = await evening.store.load(evening.session_id)
    first, *others = stored.segments
    assert not any({2, 3, 5}.intersection(fact.turns) for fact in first.facts if fact.text)
    assert not any(each.paragraph for each in (first, *others))
    await evening.upkeep.run_once()
    await evening.talk_of_bob(12)
    assert (await evening.store.load(evening.session_id)).segments[-1].paragraph


async def test_what_the_bot_says_of_a_screen_goes(evening: Evening) -> None:
    """Also if a turn that began before the screen was shown is stored after the answer."""
    shown_at = evening.clock.now()
    note = Note(NoteId("map"), shown_at, "Ada", f"A map of {SECRET}.", person_id="id-Ada")
    await evening.timeline.add_note(note)
    evening.clock.advance(1.0)
    await evening.say("Bot, what is that?", "Bob")
    await answer(evening, f"A map of {SECRET}.")
    long = (TurnPart("id-Bob", "Bob", "We leave at nine."),)
    await evening.timeline.append(TurnKind.SPEECH, long, started_at=shown_at - 1.0, ended_at=shown_at + 20.0)
    forgetting = SpeechForgetter(evening.database, evening.clock)
    (ada,) = await forgetting.find("Ada")
    assert (await forgetting.forget(ada)).answers == 1
    assert await tombstones(evening) == [1]


async def test_quotes_lead_to_other_sessions(place: Place) -> None:
    """What the bot says after it was shown a forgotten turn of another session goes, and so on from session to session.
    A session that quotes others only stays, and so does another server.
    """
    async with (
        Evening(place, name="source") as source,
        Evening(place, name="quoting", clock=source.clock, channel=702) as quoting,
        Evening(place, name="again", clock=source.clock, channel=703) as again,
        Evening(place, name="quoting Bob", clock=source.clock, channel=704) as of_bob,
    ):
        await source.say(f"My boat is called {SECRET}.", "Ada")
        await source.say("The gate code is 4411.", "Bob")
        for each in (quoting, again, of_bob):
            await each.say("Bot, what was that?", "Cy")
            await answer(each, "I will look.")
            await each.say("Bot, tell me.", "Cy")
        quote(quoting, source.session_id, 0)
        quote(of_bob, source.session_id, 1)
        for each in (quoting, of_bob):
            await answer(each, "I found it.")
            await each.upkeep.run_once()
        quote(again, quoting.session_id, 3)
        await answer(again, "Somebody found it.")
        await again.upkeep.run_once()
        forgetter = SpeechForgetter(source.database, source.clock)
        (ada,) = await forgetter.find("Ada")
        changed: list[SessionId] = []
        done = await forgetter.forget(ada, changed=changed)
        # The person's own sessions come last: an interrupted attempt still finds the others.
        assert changed[-1] == source.session_id
        assert set(changed) == {source.session_id, quoting.session_id, again.session_id} == set(done.sessions)
        found = [await tombstones(each) for each in (source, quoting, again, of_bob)]
        assert found == [[0], [3], [3], []]


async def test_facts_about_people_go_by_their_turns(evening: Evening) -> None:
    """Those about the person, and those about others that were made of the person's turn. The others stay."""
    await evening.say("Bob lives in Rome.", "Ada")
    await evening.say("I like tea.", "Bob")
    about = {"session_id": evening.session_id, "name": "x", "at": evening.clock.now()}
    facts = [("a", "id-Ada", 1), ("b", "id-Bob", 0), ("c", "id-Bob", 1)]
    async with evening.database.writing() as connection:
        for name, person_id, seq in facts:
            values = about | {"id": name, "person_id": person_id, "turn_seq": seq, "text": f"fact {name}"}
            await connection.execute(insert(person_facts).values(values))
    assert (await forget(evening.database, evening.clock, "Ada")).about == 2
    assert [fact.id for fact in await evening.facts.facts_about(["id-Ada", "id-Bob"], GUILD)] == ["c"]


@pytest.mark.slow
async def test_one_turn_is_forgotten_alone(evening: Evening) -> None:
    """A single turn is forgotten with the facts taken from it, however they are worded, and the person's other turns
    stay.
    """
    await an_evening(evening)
    drawn = {"id": "of-a-model", "session_id": evening.session_id, "turn_seq": 0, "person_id": "id-Ada", "at": 0.0}
    async with evening.database.writing() as connection:
        await connection.execute(insert(person_facts).values(drawn | {"name": "Ada", "text": "Puts parcels away."}))
    done = await forget(evening.database, evening.clock, "id-Ada", session_id=evening.session_id, seq=0)
    assert (done.turns, done.notes, done.about) == (1, 0, 1)
    stored = await evening.store.load(evening.session_id)
    facts = [fact for segment in stored.segments for fact in segment.facts]
    assert not any(fact.turn_seq == 0 and fact.note_id is None and fact.text for fact in facts)
    assert any(fact.turn_seq == 2 and SECRET in fact.text for fact in facts)
    again = await forget(evening.database, evening.clock, "id-Ada", session_id=evening.session_id, seq=0)
    assert again == ForgetReport()


async def test_people_are_found_by_name_and_id(place: Place) -> None:
    """A name finds every person who used it, the last speaker first, and an id finds one person."""
    async with Evening(place, name="one") as one:
        await one.say("Hello.", "Ada")
        part = TurnPart("id-other", "ADA", "Hello, too.")
        await one.timeline.append(
            TurnKind.SPEECH, (part,), started_at=one.clock.now() + 9, ended_at=one.clock.now() + 10
        )
        forgetting = SpeechForgetter(one.database, one.clock)
        assert [person.id for person in await forgetting.find(" ada ")] == ["id-other", "id-Ada"]
        assert [person.id for person in await forgetting.find("id-Ada")] == ["id-Ada"]
        assert await forgetting.find("Ada", session_id=SessionId("two")) == ()
        assert await forgetting.find("Eve") == ()


async def test_a_pruned_segment_is_cleaned_too(file: Path) -> None:
    """A pruned segment has no facts, so its gist and its heading go whole."""
    async with Evening(file) as evening:
        await an_evening(evening)
        first = (await evening.tier_store.tiers_of(evening.session_id))[0].kept.segment
        await evening.tier_store.prune({evening.session_id: [first.id]}, now=evening.clock.now())
        await forget(evening.database, evening.clock, "Ada")
        cleaned = (await evening.tier_store.tiers_of(evening.session_id))[0].kept.segment
        remade = replace(first, facts=(), gist=NOTHING_KEPT, paragraph="", created_at=evening.clock.now(), pruned=True)
        assert cleaned == replace(remade, heading="", note_ids=(NoteId("cat"),))


async def test_a_reply_in_progress_is_not_recorded(tmp_path: Path) -> None:
    """A reply to a question from before the forgetting is stored without its text, in each open session of the server,
    because its prompt may have had the forgotten words. Later questions and other servers are not affected.
    """
    async with (
        Evening(tmp_path / "a.db") as evening,
        Evening(tmp_path / "a.db", name="next door", clock=evening.clock, channel=702) as other,
        Evening(tmp_path / "a.db", name="elsewhere", clock=evening.clock, channel=900, guild=GUILD + 1) as elsewhere,
    ):
        await evening.say(f"I live in {SECRET}.", "Ada")
        await evening.say("Bot, where is that?", "Bob")
        await elsewhere.say("Bot, where are you?", "Cy")
        await other.say("Bot, where does Ada live?", "Cy")
        await forget(evening.database, evening.clock, "id-Ada")
        for each, text in ((evening, f"{SECRET} is in Africa."), (other, f"In {SECRET}, she said.")):
            await answer(each, text)
            await each.upkeep.run_once()
            assert each.timeline.turns[-1].tombstone
            stored = await each.store.turns(each.session_id, Seq(0), Seq(9))
            assert stored == each.timeline.turns
        assert await evening.database.wipe()
        assert SECRET.encode() not in bytes_on_disk(tmp_path)
        await answer(elsewhere, "Here.")
        assert elsewhere.timeline.turns[-1].parts[0].text == "Here."
        evening.clock.advance(30)
        await evening.say("Bot, hello again?", "Bob")
        await answer(evening, "Hello.")
        await evening.upkeep.run_once()
        assert evening.timeline.turns[-1].parts[0].text == "Hello."


async def answer(evening: Evening, text: str) -> None:
    """Let the bot answer the last turn, a minute later."""
    last = evening.timeline.total_turns - 1
    evening.clock.advance(1.0)
    now = evening.clock.now()
    part = TurnPart("assistant", "Roomtone", text)
    await evening.timeline.append(TurnKind.ASSISTANT, (part,), started_at=now, ended_at=now + 2.0, answers=Seq(last))


async def test_what_was_sent_or_drawn_before_is_not_stored_after(tmp_path: Path) -> None:
    """Prompts sent to a model, and facts, that a room made before the forgetting are not stored after it, also in rooms
    of other sessions, which may have quoted the person.
    """
    async with (
        Evening(tmp_path / "a.db") as evening,
        Evening(tmp_path / "a.db", name="next door", clock=evening.clock, channel=702) as other,
    ):
        await evening.say(f"I live in {SECRET}.", "Ada")
        await evening.say("I live in Lisbon.", "Bob")
        await other.say("I live in Rome.", "Cy")
        for each in (evening, other):
            each.upkeep.on_prompt_sent(each.prompt(f"Ada lives in {SECRET}."))
        read = await evening.store.turns(evening.session_id, Seq(0), Seq(2))
        await forget(evening.database, evening.clock, "id-Ada")
        for each in (evening, other):
            sent = [each.prompt(f"Ada lives in {SECRET}.")]
            assert not await each.prompts.store(sent, is_current=lambda revision: revision < 1)
            assert not await each.people.extract(
                each.session_id, GUILD, [], read, through=1, is_current=lambda revision: revision < 1, superseded={}
            )
            await each.upkeep.run_once()
        assert await evening.database.wipe()
        assert SECRET.encode() not in bytes_on_disk(tmp_path)


async def test_what_a_room_is_storing_now_is_found_too(postgres_place: SecretStr) -> None:
    """Its transaction began before the forgetting, and may be the first that has words of the person in that session.
    SQLite has one writer at a time anyway.
    """
    async with (
        Evening(postgres_place) as evening,
        Evening(postgres_place, name="next door", clock=evening.clock, channel=702) as other,
    ):
        await evening.say("I live in Lisbon.", "Ada")
        async with other.database.writing() as connection:
            claim = await claim_room(connection, GUILD)
        forgetter = SpeechForgetter(evening.database, evening.clock)
        (ada,) = await forgetter.find("id-Ada")
        now = evening.clock.now()
        said = Turn(Seq(0), TurnKind.SPEECH, now, now, (TurnPart("id-Ada", "Ada", f"And in {SECRET}."),))
        async with fenced(other.database, claim).writing() as connection:
            beginning = asyncio.create_task(forgetter.begin(ada))
            while not await is_somebody_forgotten(evening.database):  # noqa: ASYNC110 - another connection's transaction
                await asyncio.sleep(0.01)
            # It waits for this transaction. One that does not is over by then.
            await asyncio.wait({beginning}, timeout=0.2)
            await connection.execute(insert(turns).values(rows.turn_values(other.session_id, said)))
        assert set((await beginning).sessions) == {evening.session_id, other.session_id}


async def test_who_was_never_heard_holds_up_no_summary(tmp_path: Path) -> None:
    """Forgetting somebody of whom something is stored refuses the folds under way, because they may tell of it.
    Whoever has said nothing cannot keep a room from its summary by being forgotten again and again.
    """
    async with Evening(tmp_path / "a.db") as evening:
        await evening.say("I live in Lisbon.", "Bob")

        async def revision() -> int:
            return (await evening.store.load(evening.session_id)).state.revision

        forgetter = SpeechForgetter(evening.database, evening.clock)
        before = await revision()
        stranger = await forgetter.begin(StoredSpeaker("4711", (), 0.0, 0, ()))
        assert await forgetter.forget(stranger) == ForgetReport()
        assert await revision() == before
        (bob,) = await forgetter.find("id-Bob")
        await forgetter.forget(bob)
        assert await revision() > before


async def test_no_copy_of_a_deleted_row_stays_in_the_file(tmp_path: Path) -> None:
    """SQLite copies rows when it balances pages, and overwrites the last copy alone. The database is written anew, so
    that it has no unused pages either.
    """
    async with Evening(tmp_path / "a.db") as evening:
        for number in range(150):
            hers = f"In {SECRET} I keep {number} walruses and {number + 3} parrots."
            theirs = f"I put parcel {number} in shed {number}."
            await evening.say(*((theirs, "Bob") if number % 3 else (hers, "Ada")))
            evening.timeline.context(max_input_tokens=evening.max_input_tokens)
        await evening.timeline.settle()
        await forget(evening.database, evening.clock, "id-Ada")
        assert await evening.database.wipe()
        assert SECRET.lower().encode() not in bytes_on_disk(tmp_path).lower()
        assert await evening.database.rows("PRAGMA freelist_count") == [(0,)]
