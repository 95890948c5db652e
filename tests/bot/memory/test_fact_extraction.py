"""Facts about people are extracted from what was folded, once, and from nothing that was forgotten."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import text
from structlog.testing import capture_logs

from bot.store.speech_forgetting import SpeechForgetter
from compaction.errors import CompletionError
from compaction.memory.people import Audience
from compaction.model import Fact, FactKind, Mode, Seq, Strategy
from compaction.ports import Landing
from compaction.settings import CompactionSettings, PeopleSettings
from compaction.summary.extractive import ExtractiveSummariser, extract_chapter, extract_facts
from compaction.summary.port import Fold, KnownFact, known_facts_of
from compaction.summary.segments import make_repaired_segment
from tests.bot.evening import GUILD, HERE, Evening

if TYPE_CHECKING:
    from compaction.summary.port import ChapterFold, ChapterRequest, FoldRequest
    from tests.bot.conftest import Place


@pytest.mark.asyncio
async def test_people_are_remembered_from_what_was_folded(place: Place) -> None:
    """Facts about people are extracted once from each compacted batch, and from the window when the session ends."""
    async with Evening(place) as evening:
        await evening.say("I live in Lisbon.")
        await evening.say("My dog is called Bruno.", "Bob")
        await evening.talk(30)
        await evening.upkeep.run_once()
        assert await evening.people.facts_about(GUILD, "id-Ada") == ()
        await evening.talk(40)
        await evening.say("I'm vegan.", "Cy")
        with capture_logs() as logs:
            await evening.upkeep.run_once()
            await evening.new_upkeep().run_once()
        drawn = [line for line in logs if line["event"] == "person_facts_extracted"]
        assert [(line["through"], line["count"], line["people"]) for line in drawn] == [(10, 2, 2), (20, 0, 0)]
        present = [("id-Ada", "Ada"), ("id-Bob", "Bob"), ("id-Cy", "Cy")]
        (section,) = evening.people.section(HERE, present)
        assert "Ada: I live in Lisbon." in section.content
        assert "Bruno" in section.content
        assert "vegan" not in section.content
        assert evening.people.section(Audience(GUILD + 1, HERE.channels), present) == ()
        await evening.upkeep.finish()
        (section,) = evening.people.section(HERE, present)
        assert "Cy: I'm vegan." in section.content


@pytest.mark.asyncio
async def test_people_are_remembered_from_recursive_folds_too(place: Place) -> None:
    """A recursive segment has no facts, so those about people are extracted from its turns by rules, once, and nothing
    of what was forgotten.
    """
    async with Evening(place, compaction=CompactionSettings(strategy=Strategy.RECURSIVE)) as evening:
        await evening.say("I live in Lisbon.")
        await evening.say("I'm vegan.", "Cy")
        await evening.talk(70)
        assert [each.is_recursive for each in evening.memory.segments] == [True, True]
        assert await evening.people.forget(GUILD, "id-Cy") == 0
        with capture_logs() as logs:
            await evening.upkeep.run_once()
            await evening.new_upkeep().run_once()
        drawn = [line for line in logs if line["event"] == "person_facts_extracted"]
        assert [(line["through"], line["count"]) for line in drawn] == [(10, 1), (20, 0)]
        (known,) = await evening.people.facts_about(GUILD, "id-Ada")
        assert (known.text, known.turn_seq) == ("I live in Lisbon.", 0)
        assert await evening.people.facts_about(GUILD, "id-Cy") == ()


@pytest.mark.asyncio
async def test_people_are_remembered_where_nothing_is_folded(place: Place) -> None:
    """In the modes that fold nothing, facts are extracted from the turns that have left the recent window, as the
    session goes on. If these are folded later, no fact of their segments has the name of such a one.
    """
    async with Evening(place) as evening:
        await evening.memory.set_mode(Mode.OFF)
        await evening.say("I live in Lisbon.")
        await evening.talk(58)
        await evening.upkeep.run_once()
        assert await evening.people.facts_about(GUILD, "id-Ada") == ()
        await evening.say("I'm vegan.", "Cy")
        await evening.upkeep.run_once()
        (known,) = await evening.people.facts_about(GUILD, "id-Ada")
        assert (known.text, await evening.people.extracted_through(evening.session_id)) == ("I live in Lisbon.", 10)
        assert await evening.people.facts_about(GUILD, "id-Cy") == ()
        await evening.memory.set_mode(Mode.SUMMARY)
        await evening.talk(11)
        await evening.upkeep.run_once()
        assert evening.memory.cursor == 20
        refs = {each.ref for segment in evening.memory.segments for each in known_facts_of(segment)}
        assert known.id not in refs
        assert await evening.people.facts_about(GUILD, "id-Ada") == (known,)


@pytest.mark.asyncio
async def test_what_a_repair_finds_is_remembered_of_people(place: Place) -> None:
    """A segment that the model makes again tells more of people than rules did: its facts are extracted then, once, in
    the place of those that rules found in the same turns, and not of who has deleted theirs meanwhile.
    """
    async with Evening(place) as evening:
        await evening.say("I live in Lisbon.")
        await evening.say("Bruno again, that dog of mine.", "Bob")
        await evening.say("I'm vegan.", "Cy")
        await evening.talk(60)
        async with evening.database.writing() as connection:
            await connection.execute(text("UPDATE segments SET degraded = TRUE WHERE start_seq = 0"))
            await connection.execute(text("UPDATE sessions SET revision = revision + 1"))
        await evening.upkeep.run_once()
        assert await evening.people.forget(GUILD, "id-Cy") == 1
        first = evening.memory.segments[0]
        assert first.degraded
        said = next(fact for fact in first.facts if fact.text == "I live in Lisbon.")
        facts = (
            replace(said, text="Ada lives in Lisbon, near the castle.", quoted=False),
            Fact((Seq(1),), FactKind.LASTING, "Bob", 2.0, "Bob has a dog, Bruno.", subject="Bob", quoted=False),
            Fact((Seq(2),), FactKind.LASTING, "Cy", 3.0, "Cy eats no meat.", subject="Cy", quoted=False),
        )
        repaired = make_repaired_segment(
            first, Fold("They talk of themselves.", facts), later=(), summariser="llm ledger.v8", at=first.created_at
        )
        state = evening.memory.state
        assert await evening.store.land(
            Landing(
                session_id=evening.session_id,
                expected_cursor=state.cursor,
                expected_revision=state.revision,
                segment=repaired,
                state=replace(state, revision=state.revision + 1),
                folded_note_ids=(),
                repairs=True,
            )
        )
        with capture_logs() as logs:
            await evening.upkeep.run_once()
            await evening.upkeep.run_once()
        drawn = [line for line in logs if line["event"] == "person_facts_extracted"]
        assert [(line["through"], line["count"], line["people"]) for line in drawn] == [(10, 2, 2)]
        known = {
            who: [(fact.text, fact.is_current) for fact in await evening.people.facts_about(GUILD, f"id-{who}")]
            for who in ("Ada", "Bob", "Cy")
        }
        assert known == {
            "Ada": [("I live in Lisbon.", False), ("Ada lives in Lisbon, near the castle.", True)],
            "Bob": [("Bob has a dog, Bruno.", True)],
            "Cy": [],
        }
        assert await evening.people.extracted_through(evening.session_id) == evening.memory.cursor


@pytest.mark.asyncio
async def test_what_was_told_in_another_session_ends_with_what_is_said_now(place: Place) -> None:
    """A fact that was known from another session and told again in this one is over when this one supersedes it."""
    async with Evening(place) as evening:
        await evening.say("I live in Lisbon.")
        await evening.talk(70)
        await evening.upkeep.run_once()
        async with evening.database.writing() as connection:
            await connection.execute(text("UPDATE person_facts SET id = 'before:0#0'"))
            await connection.execute(text("UPDATE segments SET degraded = TRUE WHERE start_seq = 10"))
            await connection.execute(text("UPDATE sessions SET revision = revision + 1"))
        await evening.upkeep.run_once()
        first, second, *_ = evening.memory.segments
        (number,) = (number for number, fact in enumerate(first.facts) if fact.text == "I live in Lisbon.")
        turns = await evening.store.turns(evening.session_id, Seq(10), Seq(20))
        seq = next(turn.seq for turn in turns if turn.parts[0].speaker == "Ada")
        moved = Fact(
            (seq,), FactKind.OTHER, "Ada", first.ended_at + 1, "Ada left.", (f"{first.id}#{number}",), quoted=False
        )
        repaired = make_repaired_segment(
            second, Fold("Ada moves.", (moved,)), later=(), summariser="llm ledger.v8", at=second.created_at
        )
        state = evening.memory.state
        assert await evening.store.land(
            Landing(
                session_id=evening.session_id,
                expected_cursor=state.cursor,
                expected_revision=state.revision,
                segment=repaired,
                state=replace(state, revision=state.revision + 1),
                folded_note_ids=(),
                repairs=True,
            )
        )
        await evening.upkeep.run_once()
        await evening.upkeep.run_once()
        known = await evening.people.facts_about(GUILD, "id-Ada")
        assert [(fact.id, fact.is_current) for fact in known] == [("before:0#0", False)]


class _Repairing:
    """A summariser that fails on the first batch, and waits when it makes that batch's segment again.

    `repairs`: set when it does. `may_end`: what it waits for.
    """

    name = "llm"
    model = "repairing"

    def __init__(self) -> None:
        self.repairs = asyncio.Event()
        self.may_end = asyncio.Event()
        self._failed = False

    async def fold_chapter(self, request: ChapterRequest) -> ChapterFold:
        """Return the chapter that the extractive summariser makes."""
        return extract_chapter(request)

    async def fold(self, request: FoldRequest) -> Fold:
        """Fold without a model, but find something else in the first batch the second time."""
        if request.start > 0:
            return await ExtractiveSummariser().fold(request)
        if not self._failed:
            self._failed = True
            raise CompletionError("The key is not valid.", retryable=False)
        self.repairs.set()
        await self.may_end.wait()
        at = request.turns[0].started_at
        found = Fact((Seq(0),), FactKind.LASTING, "Ada", at, "Ada has a dog, Bruno.", subject="Ada", quoted=False)
        return Fold("They talk of themselves.", (found,))


@pytest.mark.asyncio
async def test_a_repair_that_lands_while_facts_are_stored_is_not_missed(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The facts of a degraded segment are being stored when the model has made the segment again. Its facts are
    extracted all the same.
    """
    model = _Repairing()
    async with Evening(place, summariser=model) as evening:
        await evening.say("Bruno again, that dog of mine.")
        await evening.talk(60)
        assert [each.degraded for each in evening.memory.segments] == [True]
        for _ in range(10):
            await evening.say("Nothing new.")
        evening.clock.advance(3_600.0)
        evening.memory.context(max_input_tokens=evening.max_input_tokens)
        await model.repairs.wait()
        extract = evening.people.extract

        async def extract_late(*args: Any, **kwargs: Any) -> bool:
            stored = await extract(*args, **kwargs)
            model.may_end.set()
            await evening.memory.settle()
            return stored

        monkeypatch.setattr(evening.people, "extract", extract_late)
        await evening.upkeep.run_once()
        assert [each.degraded for each in evening.memory.segments] == [False, False]
        known = await evening.people.facts_about(GUILD, "id-Ada")
        assert [fact.text for fact in known if fact.is_current] == ["Ada has a dog, Bruno."]


@pytest.mark.asyncio
async def test_the_end_of_a_long_session_reads_no_more_than_a_fold(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was not folded is held against the facts that a fold would know, and not against all of the session."""
    known: list[int] = []

    def counted(*args: Any, **options: Any) -> tuple[Fact, ...]:
        known.append(len(options["known"]))
        return extract_facts(*args, **options)

    monkeypatch.setattr("bot.memory.fact_extraction.extract_facts", counted)
    monkeypatch.setattr("compaction.summary.ledger._NEWEST_KNOWN", 2)
    monkeypatch.setattr("compaction.summary.ledger._WEIGHTIEST_KNOWN", 2)
    async with Evening(place) as evening:
        await evening.talk(100)
        await evening.upkeep.finish()
        assert sum(len(each.facts) for each in evening.memory.segments) > 4
        assert len(known) >= 5
        assert max(known) == 4


@pytest.mark.asyncio
async def test_no_fact_is_drawn_of_who_opted_out(place: Place) -> None:
    """What somebody said before they opted out is drawn into no fact afterwards, folded or not; others' words are."""
    async with Evening(place) as evening:
        await evening.say("I live in Lisbon.")
        await evening.say("My dog is called Bruno.", "Bob")
        await evening.talk(70)
        await evening.say("I'm vegan.")
        evening.memory.withhold(lambda: frozenset({"id-Ada"}))
        await evening.upkeep.finish()
        assert await evening.people.facts_about(GUILD, "id-Ada") == ()
        assert [fact.text for fact in await evening.people.facts_about(GUILD, "id-Bob")] == ["My dog is called Bruno."]


@pytest.mark.asyncio
async def test_people_may_be_left_alone_by_setting(place: Place) -> None:
    """If the setting is off, no facts about people are extracted or sent."""
    async with Evening(place, people=PeopleSettings(enabled=False)) as evening:
        await evening.say("I live in Lisbon.")
        await evening.upkeep.finish()
        assert await evening.people.facts_about(GUILD, "id-Ada") == ()
        assert evening.people.section(HERE, [("id-Ada", "Ada")]) == ()


@pytest.mark.asyncio
async def test_what_was_said_before_it_was_forgotten_is_not_drawn_afterwards(place: Place) -> None:
    """After the facts about a person are forgotten, no new ones are extracted from earlier turns, only from
    later ones.
    """
    async with Evening(place) as evening:
        await evening.say("I live in Zanzibar.")
        await evening.say("I live in Lisbon.", "Bob")
        assert await evening.people.forget(GUILD, "id-Ada") == 0
        await evening.talk(3)
        await evening.say("I'm vegan.")
        await evening.upkeep.run_once(through=evening.memory.total_turns)
        (kept,) = await evening.people.facts_about(GUILD, "id-Ada")
        assert kept.text == "I'm vegan."
        assert len(await evening.people.facts_about(GUILD, "id-Bob")) == 1
        assert await evening.people.forget(GUILD, "id-Ada") == 1
        assert await evening.people.forget(GUILD, "id-Ada") == 0


@pytest.mark.asyncio
async def test_what_is_forgotten_while_it_is_drawn_is_not_kept(place: Place) -> None:
    """Facts from turns that were forgotten while they were being extracted are not stored."""
    async with Evening(place) as evening:
        await evening.say("I live in Zanzibar.")
        read = await evening.store.turns(evening.session_id, Seq(0), Seq(1))
        forgetting = SpeechForgetter(evening.database, evening.clock)
        (ada,) = await forgetting.find("Ada")
        await forgetting.forget(ada)
        facts = [KnownFact(f"evening#{number}", fact) for number, fact in enumerate(extract_facts(read, start=Seq(0)))]
        await evening.people.extract(evening.session_id, GUILD, facts, read, through=1, is_current=lambda _: True)
        assert await evening.people.facts_about(GUILD, "id-Ada") == ()
