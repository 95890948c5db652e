"""Facts about people are extracted from what was folded, once, and from nothing that was forgotten."""

from __future__ import annotations

from pathlib import Path

from structlog.typing import EventDict

from bot.store.speech_forgetting import SpeechForgetter
from compaction.memory.people import Audience
from compaction.model import Fact, FactKind, Seq
from compaction.settings import PeopleSettings
from compaction.summary.port import KnownFact
from tests.bot.evening import GUILD, HERE, Evening
from tests.fakes.labelling_summariser import LabellingSummariser


async def test_people_are_remembered_from_what_was_folded(file: Path, logs: list[EventDict]) -> None:
    """Facts about people are extracted once from each folded batch, and not from turns that are in the window."""
    async with Evening(file, summariser=LabellingSummariser()) as evening:
        await evening.say("I live in Lisbon.")
        await evening.say("My dog is called Bruno.", "Bob")
        await evening.talk(30)
        await evening.upkeep.run_once()
        assert await evening.people.facts_about(GUILD, "id-Ada") == ()
        await evening.talk(40)
        await evening.say("I'm vegan.", "Cy")
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


async def test_no_fact_is_drawn_of_who_opted_out(file: Path) -> None:
    """What somebody said before they opted out is drawn into no fact afterwards; others' words are."""
    async with Evening(file, summariser=LabellingSummariser()) as evening:
        await evening.say("I live in Lisbon.")
        await evening.say("My dog is called Bruno.", "Bob")
        await evening.talk(70)
        evening.timeline.withhold(lambda: frozenset({"id-Ada"}))
        await evening.upkeep.complete()
        assert await evening.people.facts_about(GUILD, "id-Ada") == ()
        assert [fact.text for fact in await evening.people.facts_about(GUILD, "id-Bob")] == ["My dog is called Bruno."]


async def test_people_may_be_left_alone_by_setting(file: Path) -> None:
    """If the setting is off, no facts about people are extracted or sent."""
    settings = PeopleSettings(enabled=False)
    async with Evening(file, people=settings, summariser=LabellingSummariser()) as evening:
        await evening.say("I live in Lisbon.")
        await evening.talk(70)
        await evening.upkeep.run_once()
        assert await evening.people.facts_about(GUILD, "id-Ada") == ()
        assert evening.people.section(HERE, [("id-Ada", "Ada")]) == ()


async def test_what_is_forgotten_while_it_is_drawn_is_not_kept(evening: Evening) -> None:
    """Facts from turns that were forgotten while they were being extracted are not stored."""
    await evening.say("I live in Zanzibar.")
    read = await evening.store.turns(evening.session_id, Seq(0), Seq(1))
    forgetting = SpeechForgetter(evening.database, evening.clock)
    (ada,) = await forgetting.find("Ada")
    await forgetting.forget(ada)
    own = Fact((Seq(0),), "Ada lives in Zanzibar.", FactKind.LASTING, speaker="Ada", owner="Ada")
    facts = [KnownFact("evening#0", own)]
    await evening.people.extract(
        evening.session_id, GUILD, facts, read, through=1, is_current=lambda _: True, superseded={}
    )
    assert await evening.people.facts_about(GUILD, "id-Ada") == ()
