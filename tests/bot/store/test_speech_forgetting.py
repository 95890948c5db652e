"""Forgetting a person removes their words everywhere: turns, segments, notes, summaries, search, history
and the file.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import insert

from bot.memory.recall import Recall
from bot.store import speech_forgetting
from bot.store.forget_report import ForgetReport
from bot.store.search.search import SqlRecallIndex
from bot.store.search.vector_store import VectorStore
from bot.store.segment_import import SegmentImporter
from bot.store.session_forgetting import turns_of_person
from bot.store.speakers import StoredSpeaker, read_speakers
from bot.store.speech_forgetting import SpeechForgetter
from bot.store.tables import person_facts
from compaction.memory.passage import Scope
from compaction.memory.segment_record import RecordMetadata, SegmentRecord
from compaction.model import Fact, Note, NoteId, SegmentId, Seq, SessionId, TurnKind, TurnPart
from compaction.summary.port import NOTHING_KEPT, REACH_TURNS, Fold
from tests.bot.evening import GUILD, Evening
from tests.bot.store.read_transactions import ReadTransactions

if TYPE_CHECKING:
    from pathlib import Path

    from sqlalchemy import Select
    from sqlalchemy.ext.asyncio import AsyncConnection

    from compaction.model import Turn
    from compaction.summary.port import FoldRequest
    from tests.bot.conftest import Place

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
    await evening.memory.append(TurnKind.SPEECH, both, started_at=at, ended_at=at + 2.0)
    await evening.memory.add_note(Note(NoteId("map"), at, "Ada", f"A map of {SECRET}."))
    await evening.memory.add_note(Note(NoteId("cat"), at, "Bob", "A picture of a cat."))
    await evening.memory.retire_live_notes()
    await evening.talk(70)
    await evening.upkeep.run_once()
    first, *_ = await evening.tier_store.tiers_of(evening.session_id)
    await evening.tier_store.archive(evening.session_id, [first.kept.segment.id], now=at)
    await evening.say(f"I still love {SECRET}.", "Ada")


def bytes_on_disk(folder: Path) -> bytes:
    """Return all bytes of the database and its journal."""
    return b"".join(path.read_bytes() for path in sorted(folder.iterdir()))


@pytest.mark.asyncio
async def test_everything_a_person_said_is_gone(tmp_path: Path) -> None:
    """A person's words are gone from the turns up to the bytes of the file. The words of others and all turn numbers
    stay.
    """
    async with Evening(tmp_path / "a.db") as evening:
        await an_evening(evening)
        before = await evening.store.load(evening.session_id)
        assert any(SECRET in fact.text for segment in before.segments for fact in segment.facts)
        assert SECRET.encode() in bytes_on_disk(tmp_path)
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
            assert SECRET not in segment.gist
            assert "map" not in segment.note_ids
        assert await evening.people.facts_about(GUILD, "id-Ada") == ()
        recall = Recall(SqlRecallIndex(evening.database, VectorStore(evening.database)), evening.store)
        assert not [each for each in await recall.search(SECRET, Scope(archived=True)) if SECRET in each.text]
        assert any("4411" in each.text for each in await recall.search("gate code"))
        assert SECRET.encode() not in bytes_on_disk(tmp_path)
        assert await forgetting.find("ada") == ()


@pytest.mark.asyncio
async def test_what_the_bot_told_of_a_person_is_gone_too(tmp_path: Path) -> None:
    """The bot's answers to a person, or that quote them, are forgotten too, also in other sessions. Other
    answers stay.
    """
    secret = f"My boat is called {SECRET} after my aunt."
    async with Evening(tmp_path / "a.db") as evening:
        await evening.say(secret, "Ada")
        await evening.say("Bot, what is her boat called?", "Bob")
        await evening.say(f"Just now, Ada said: {secret}", "Bot", kind=TurnKind.ASSISTANT)
        await evening.say("Bot, and what did I just ask?", "Ada")
        await evening.say(f"About the {SECRET}.", "Bot", kind=TurnKind.ASSISTANT)
        await evening.say("Bot, what time is it?", "Bob")
        await evening.say("It is nine.", "Bot", kind=TurnKind.ASSISTANT)
        await evening.talk(75)
        async with Evening(tmp_path / "a.db", name="later", clock=evening.clock) as later:
            await later.say("Bot, what was that boat called?", "Bob")
            await later.say(f"On Monday somebody said: {secret}", "Bot", kind=TurnKind.ASSISTANT)
        forgetting = SpeechForgetter(evening.database, evening.clock)
        (ada,) = await forgetting.find("Ada")
        done = await forgetting.forget(ada)
        assert (done.answers, set(done.sessions)) == (3, {evening.session_id, SessionId("later")})
        turns = await evening.store.turns(evening.session_id, Seq(0), Seq(7))
        assert [turn.seq for turn in turns if turn.tombstone] == [0, 2, 3, 4]
        stored = await evening.store.load(evening.session_id)
        assert not any(SECRET in fact.text for segment in stored.segments for fact in segment.facts)
        assert SECRET.encode() not in bytes_on_disk(tmp_path)


@pytest.mark.slow
@pytest.mark.asyncio
async def test_one_turn_is_forgotten_alone(place: Place) -> None:
    """A single turn is forgotten with the facts taken from it, however they are worded, and the person's other turns
    stay.
    """
    async with Evening(place) as evening:
        await an_evening(evening)
        drawn = {"id": "of-a-model", "session_id": evening.session_id, "turn_seq": 0, "person_id": "id-Ada", "at": 0.0}
        async with evening.database.writing() as connection:
            await connection.execute(insert(person_facts).values(drawn | {"name": "Ada", "text": "Puts parcels away."}))
        forgetting = SpeechForgetter(evening.database, evening.clock)
        (ada,) = await forgetting.find("id-Ada")
        done = await forgetting.forget(ada, session_id=evening.session_id, seq=0)
        assert (done.turns, done.notes, done.about) == (1, 0, 1)
        stored = await evening.store.load(evening.session_id)
        facts = [fact for segment in stored.segments for fact in segment.facts]
        assert not any(fact.turn_seq == 0 and fact.note_id is None and fact.text for fact in facts)
        assert any(fact.turn_seq == 2 and SECRET in fact.text for fact in facts)
        again = await forgetting.forget(ada, session_id=evening.session_id, seq=0)
        assert again == ForgetReport()


@pytest.mark.asyncio
async def test_people_are_found_by_name_and_id(place: Place) -> None:
    """A name finds every person who used it, the last speaker first, and an id finds one person."""
    async with Evening(place, name="one") as one:
        await one.say("Hello.", "Ada")
        part = TurnPart("id-other", "ADA", "Hello, too.")
        await one.memory.append(TurnKind.SPEECH, (part,), started_at=one.clock.now() + 9, ended_at=one.clock.now() + 10)
        forgetting = SpeechForgetter(one.database, one.clock)
        assert [person.id for person in await forgetting.find(" ada ")] == ["id-other", "id-Ada"]
        assert [person.id for person in await forgetting.find("id-Ada")] == ["id-Ada"]
        assert await forgetting.find("Ada", session_id=SessionId("two")) == ()
        assert await forgetting.find("Eve") == ()


@pytest.mark.asyncio
async def test_a_name_is_looked_for_in_one_session_after_the_other(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All turns of some years are more than the memory of a small machine, and take longer than one transaction may."""
    async with Evening(place, name="one") as one, Evening(place, name="two", clock=one.clock, channel=702) as two:
        await one.say("Hello.", "Ada")
        one.clock.advance(9.0)
        for name in ("Zoe", "Ada"):
            part = TurnPart("id-Ada", name, "Hello again.")
            await two.memory.append(TurnKind.SPEECH, (part,), started_at=one.clock.now(), ended_at=one.clock.now() + 1)
            one.clock.advance(9.0)
        await two.say("Hello, too.", "Bob")
        transactions = ReadTransactions(monkeypatch)

        async def noted(connection: AsyncConnection, wanted: Select[Any], **options: Any) -> dict[str, StoredSpeaker]:
            for row in await connection.execute(wanted):
                transactions.note(row.session_id)
            return await read_speakers(connection, wanted, **options)

        monkeypatch.setattr(speech_forgetting, "read_speakers", noted)
        (ada,) = await SpeechForgetter(one.database, one.clock).find("ada")
        assert (ada.names, ada.turn_count, ada.sessions) == (("Ada", "Zoe"), 3, (one.session_id, two.session_id))
        # Before that, somebody may have it for an id.
        assert [set(each) for each in transactions.with_sessions[-2:]] == [{one.session_id}, {two.session_id}]


@pytest.mark.asyncio
async def test_a_pruned_segment_is_cleaned_too(place: Place) -> None:
    """A pruned segment has no facts, so its gist goes whole."""
    async with Evening(place) as evening:
        await an_evening(evening)
        first = (await evening.tier_store.tiers_of(evening.session_id))[0].kept.segment
        await evening.tier_store.prune({evening.session_id: [first.id]}, now=evening.clock.now())
        forgetting = SpeechForgetter(evening.database, evening.clock)
        (ada,) = await forgetting.find("Ada")
        await forgetting.forget(ada)
        cleaned = (await evening.tier_store.tiers_of(evening.session_id))[0].kept.segment
        remade = replace(first, facts=(), gist=NOTHING_KEPT, paragraph="", created_at=evening.clock.now(), pruned=True)
        assert cleaned == replace(remade, note_ids=(NoteId("cat"),))


@pytest.mark.asyncio
async def test_the_record_of_an_imported_segment_is_cleaned_too(place: Place) -> None:
    """Its decisions and files are in no gist and in no fact; a record that tells nothing of the person stays."""
    async with Evening(place) as evening:
        await evening.say("Hello.", "Ada")
        importer = SegmentImporter(evening.database)
        for name, decision in (("told", "Ada decided to sell the boat."), ("other", "The boat is sold.")):
            record = SegmentRecord(
                SegmentId(name), "boats", SessionId(name), 0, 9, 90, 9, 0.1, 5.0, 5.0, 0, 0.5, "They spoke of boats.",
                (decision,), (), RecordMetadata(contains_code=False, contains_errors=False, task_completed=True),
            )  # fmt: skip
            await importer.import_record(record)
        forgetting = SpeechForgetter(evening.database, evening.clock)
        (ada,) = await forgetting.find("Ada")
        assert set((await forgetting.forget(ada)).sessions) == {evening.session_id, SessionId("told")}
        decisions = [
            kept.kept.record.key_decisions
            for name in ("told", "other")
            for kept in await evening.tier_store.tiers_of(SessionId(name))
            if kept.kept.record is not None
        ]
        assert decisions == [(), ("The boat is sold.",)]


class _Careless:
    """A summariser that attributes what one person said to the later turn of another who agreed."""

    name, model = "careless", "careless"

    async def fold(self, request: FoldRequest) -> Fold:
        said, _, agreed = request.turns[:3]
        texts = (said.parts[0].text, "The gate code is 4411.")
        facts = tuple(Fact((agreed.seq,), text, speaker="Bob", at=agreed.started_at) for text in texts)
        return Fold(" ".join(texts), facts, " ".join(texts), "fold.v1")


@pytest.mark.asyncio
async def test_what_a_model_took_for_somebody_elses_is_gone_too(place: Place) -> None:
    """A fact with the person's own words is forgotten even if the model attributed it to another speaker."""
    async with Evening(place, summariser=_Careless()) as evening:
        await evening.say(f"The hidden key lies under the third stone in {SECRET}.", "Ada")
        await evening.say("The gate code?", "Ada")
        await evening.say("Fine, and the gate code is 4411.", "Bob")
        for number in range(60):
            await evening.say(f"I put parcel {number} away.", "Bob")
        evening.memory.context(max_input_tokens=8_000)
        await evening.memory.settle()
        assert SECRET in str(evening.memory.segments)
        forgetting = SpeechForgetter(evening.database, evening.clock)
        (ada,) = await forgetting.find("Ada")
        done = await forgetting.forget(ada)
        stored = await evening.store.load(evening.session_id)
        assert done.facts >= 1
        assert SECRET not in str((stored.segments, stored.state))
        assert "4411" in str(stored.state.summary)


@pytest.mark.asyncio
async def test_what_was_said_after_the_clock_was_set_back_explains_nothing(place: Place) -> None:
    """An answer that says forgotten words again goes, though somebody else says them later: the numbers of the turns
    tell what came first, and not their times.
    """
    async with Evening(place) as evening:
        await evening.say("My aunt lives in Zanzibarq near Quillport.")
        for number in range(REACH_TURNS + 1):
            await evening.say(f"I put parcel {number} away.", "Bob")
        answer = await evening.say("Quillport has aunts, like Zanzibarq.", "Roomtone", kind=TurnKind.ASSISTANT)
        evening.clock.advance(-3_600.0)
        await evening.say("I read of aunts, of Quillport and of Zanzibarq.", "Cy")
        forgetting = SpeechForgetter(evening.database, evening.clock)
        (ada,) = await forgetting.find("Ada")
        assert (await forgetting.forget(ada)).answers == 1
        (stored,) = await evening.store.turns(evening.session_id, answer.seq, Seq(answer.seq + 1))
        assert stored.tombstone


@pytest.mark.asyncio
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
        forgetter = SpeechForgetter(evening.database, evening.clock)
        (ada,) = await forgetter.find("id-Ada")
        await forgetter.forget(ada)
        for each, text in ((evening, f"{SECRET} is in Africa."), (other, f"In {SECRET}, she said.")):
            await answer(each, text)
            await each.upkeep.run_once(through=each.memory.total_turns)
            assert each.memory.turns[-1].tombstone
            stored = await each.store.turns(each.session_id, Seq(0), Seq(9))
            assert stored == each.memory.turns
        assert SECRET.encode() not in bytes_on_disk(tmp_path)
        await answer(elsewhere, "Here.")
        assert elsewhere.memory.turns[-1].parts[0].text == "Here."
        evening.clock.advance(30)
        await evening.say("Bot, hello again?", "Bob")
        await answer(evening, "Hello.")
        await evening.upkeep.run_once()
        assert evening.memory.turns[-1].parts[0].text == "Hello."


async def answer(evening: Evening, text: str) -> None:
    """Let the bot answer the last turn, a minute later."""
    last = evening.memory.total_turns - 1
    evening.clock.advance(1.0)
    now = evening.clock.now()
    part = TurnPart("assistant", "Roomtone", text)
    await evening.memory.append(TurnKind.ASSISTANT, (part,), started_at=now, ended_at=now + 2.0, answers=Seq(last))


@pytest.mark.asyncio
async def test_what_was_sent_or_drawn_before_is_not_stored_after(tmp_path: Path) -> None:
    """Texts sent to a model, and facts, that a room made before the forgetting are not stored after it, also in rooms
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
            each.upkeep.on_messages_sent({"digest": f"Ada lives in {SECRET}."})
        read = await evening.store.turns(evening.session_id, Seq(0), Seq(2))
        forgetter = SpeechForgetter(evening.database, evening.clock)
        (ada,) = await forgetter.find("id-Ada")
        await forgetter.forget(ada)
        for each in (evening, other):
            sent = [f"Ada lives in {SECRET}."]
            assert not await each.prompts.store_sent_texts(
                each.session_id, sent, is_current=lambda revision: revision < 1
            )
            assert not await each.people.extract(
                each.session_id, GUILD, [], read, through=1, is_current=lambda revision: revision < 1
            )
            await each.upkeep.run_once(through=each.memory.total_turns)
        assert SECRET.encode() not in bytes_on_disk(tmp_path)


@pytest.mark.asyncio
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


@pytest.mark.asyncio
async def test_what_everybody_says_deletes_nothing_of_others(place: Place) -> None:
    """Whoever says 'you can' and 'thank you', and has that forgotten, takes no answer of the bot and no summary along:
    not in their own session, nor in others of the server.
    """
    phrases = ("You can.", "Let me.", "Thank you.", "Of the.", "Is there anything else?")
    told = "You meet on Friday at eight; you can reach Ada at the end of the road. Thank you! Is there anything else?"
    async with (
        Evening(place) as evening,
        Evening(place, name="next door", clock=evening.clock, channel=702) as other,
    ):
        for each in (evening, other):
            await each.talk_of_bob(60)
        before = {each: await each.store.load(each.session_id) for each in (evening, other)}
        for phrase in phrases:
            await evening.say(phrase, "Eve")
        for each in (evening, other):
            await each.say("Bot, when do we meet?", "Bob")
            await answer(each, told)
        forgetter = SpeechForgetter(evening.database, evening.clock)
        (eve,) = await forgetter.find("Eve")
        done = await forgetter.forget(eve)
        assert (done.turns, done.answers, done.facts, done.sessions) == (len(phrases), 0, 0, (evening.session_id,))
        for each in (evening, other):
            after = await each.store.load(each.session_id)
            assert after.segments == before[each].segments
            (last,) = await each.store.turns(each.session_id, Seq(after.total_turns - 1), Seq(after.total_turns))
            assert last.parts[0].text == told


@pytest.mark.asyncio
async def test_other_servers_are_left_alone(place: Place) -> None:
    """Nothing said on one server is used on another. What the bot told again on the same server goes, however old: the
    turn that it quotes may have been deleted by its age. Other servers' rooms go on with their summaries.
    """
    quote = "We meet on Friday at eight behind the lighthouse."
    async with (
        Evening(place, name="before") as before,
        Evening(place, name="theirs", clock=before.clock, channel=702) as theirs,
        Evening(place, name="after", clock=before.clock, channel=703) as after,
        Evening(place, name="elsewhere", clock=before.clock, channel=900, guild=GUILD + 1) as elsewhere,
    ):
        await before.say("Bot, what about Friday?", "Bob")
        await answer(before, f"Somebody said: {quote}")
        before.clock.advance(7_200.0)
        await theirs.say(quote, "Eve")
        for each in (after, elsewhere):
            await each.say("Bot, what about Friday?", "Bob")
            await answer(each, f"Somebody said: {quote} Ask Eve.")
        revision = (await elsewhere.store.load(elsewhere.session_id)).state.revision
        forgetter = SpeechForgetter(before.database, before.clock)
        (eve,) = await forgetter.find("Eve")
        done = await forgetter.forget(eve)
        assert (done.answers, set(done.sessions)) == (2, {each.session_id for each in (before, after, theirs)})
        gone = {
            each: (await each.store.turns(each.session_id, Seq(1), Seq(2)))[0].tombstone
            for each in (before, after, elsewhere)
        }
        assert gone == {before: True, after: True, elsewhere: False}
        assert (await elsewhere.store.load(elsewhere.session_id)).state.revision == revision


@pytest.mark.asyncio
async def test_each_session_is_read_in_a_transaction_of_its_own(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """What somebody has said in years takes longer to read than one transaction may take, and they could not be
    forgotten.
    """
    async with (
        Evening(place) as evening,
        Evening(place, name="next door", clock=evening.clock, channel=702) as other,
    ):
        for each in (evening, other):
            await each.say(f"I live in {SECRET}.", "Ada")
            await each.say("The gate code is 4411.", "Bob")
        forgetter = SpeechForgetter(evening.database, evening.clock)
        (ada,) = await forgetter.find("Ada")
        transactions = ReadTransactions(monkeypatch)

        async def noted(connection: AsyncConnection, session_id: SessionId, *rest: Any) -> list[Turn]:
            transactions.note(session_id)
            return await turns_of_person(connection, session_id, *rest)

        monkeypatch.setattr(speech_forgetting, "turns_of_person", noted)
        await forgetter.forget(ada)
        assert transactions.with_sessions == [[evening.session_id], [other.session_id]]


@pytest.mark.asyncio
async def test_what_another_room_tells_while_somebody_is_forgotten_goes_too(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its session was searched before, and it does not know of the forgetting yet."""
    async with (
        Evening(place) as evening,
        Evening(place, name="next door", clock=evening.clock, channel=702) as other,
    ):
        await evening.say("We meet on Friday at eight behind the lighthouse.", "Eve")
        await other.say("Bot, what about Friday?", "Bob")
        refresh = SpeechForgetter._refresh_open_rooms

        async def after_an_answer(self: SpeechForgetter, *args: Any, **options: Any) -> Any:
            await answer(other, "Somebody said: We meet on Friday at eight behind the lighthouse.")
            return await refresh(self, *args, **options)

        monkeypatch.setattr(SpeechForgetter, "_refresh_open_rooms", after_an_answer)
        changed: list[SessionId] = []
        forgetter = SpeechForgetter(evening.database, evening.clock)
        (eve,) = await forgetter.find("Eve")
        done = await forgetter.forget(eve, on_changed=changed.append)
        assert (done.turns, done.answers) == (1, 1)
        assert set(done.sessions) == {evening.session_id, other.session_id} == set(changed)
        assert [each.tombstone for each in await other.store.turns(other.session_id, Seq(0), Seq(2))] == [False, True]


@pytest.mark.asyncio
async def test_a_rare_word_takes_a_fact_along_only_after_their_words(place: Place) -> None:
    """A model words facts as it likes. One that it drew before the person's words came into the session has none of
    them, though the person used the same word.
    """
    async with (
        Evening(place) as evening,
        Evening(place, name="next door", clock=evening.clock, channel=702) as other,
    ):
        await evening.say("My marmalade is kept behind the blue lighthouse.", "Eve")
        for number in range(9):
            await other.say(f"I put parcel {number} away.", "Bob")
        await answer(other, "Somebody keeps it behind the blue lighthouse.")
        about = {"session_id": other.session_id, "person_id": "id-Bob", "name": "Bob", "at": other.clock.now()}
        async with other.database.writing() as connection:
            for seq, text in ((2, "Likes marmalade."), (9, "Has to do with marmalade.")):
                values = about | {"id": f"fact-{seq}", "turn_seq": seq, "text": text}
                await connection.execute(insert(person_facts).values(values))
        forgetter = SpeechForgetter(evening.database, evening.clock)
        (eve,) = await forgetter.find("Eve")
        assert (await forgetter.forget(eve)).answers == 1
        (known,) = await other.facts.facts_about(["id-Bob"], GUILD)
        assert known.text == "Likes marmalade."


@pytest.mark.asyncio
async def test_no_copy_of_a_deleted_row_stays_in_the_file(tmp_path: Path) -> None:
    """SQLite copies rows when it balances pages, and overwrites the last copy alone. The database is written anew, so
    that it has no unused pages either.
    """
    async with Evening(tmp_path / "a.db") as evening:
        for number in range(150):
            hers = f"In {SECRET} I keep {number} walruses and {number + 3} parrots."
            theirs = f"I put parcel {number} in shed {number}."
            await evening.say(*((theirs, "Bob") if number % 3 else (hers, "Ada")))
            evening.memory.context(max_input_tokens=evening.max_input_tokens)
        await evening.memory.settle()
        forgetter = SpeechForgetter(evening.database, evening.clock)
        (ada,) = await forgetter.find("id-Ada")
        assert (await forgetter.forget(ada)).wiped
        assert SECRET.lower().encode() not in bytes_on_disk(tmp_path).lower()
        assert await evening.database.rows("PRAGMA freelist_count") == [(0,)]
