"""The store of facts that people said about themselves follows the same rules as in memory, for each guild
separately.
"""

from __future__ import annotations

from collections.abc import Sequence

from bot.store.database import Database
from bot.store.people import ForgottenFacts, PeopleStore
from bot.store.personal_data import PersonalDataStore
from bot.store.sessions import Sessions
from compaction.memory.people import EndedFacts, ExtractedFacts, PersonFact
from compaction.model import Seq, SessionId
from tests.bot.conftest import Place
from tests.bot.evening import GUILD as EVENING_GUILD
from tests.bot.evening import Evening
from tests.fakes.clock import FakeClock

GUILD, OTHER = 7, 8


def drawn(*texts: str, session: str = "evening", start: int = 0, closes: str = "") -> ExtractedFacts:
    """Return what Ada says of herself in a batch. `closes`: the fact that the first one takes the place of."""
    facts = tuple(
        PersonFact(
            f"{session}:{start}#{at}", "id-Ada", "Ada", each, SessionId(session), Seq(start + at), start + at + 0.0
        )
        for at, each in enumerate(texts)
    )
    ended = (EndedFacts("id-Ada", frozenset({closes}), facts[0].id, facts[0].at),) if closes else ()
    return ExtractedFacts(facts, ended)


def held(known: Sequence[PersonFact]) -> list[str]:
    return [fact.text for fact in known if fact.is_current]


async def store(database: Database, *sessions: tuple[str, int]) -> PeopleStore:
    for number, (name, guild) in enumerate(sessions):
        await Sessions(database, FakeClock()).open(
            guild_id=guild, channel_id=number, resume_within_s=0.0, session_id=SessionId(name)
        )
    return PeopleStore(database)


async def test_the_store_keeps_what_the_rules_say(database: Database) -> None:
    """Superseding across sessions, retractions and history give the same facts as the rules in memory. Each has the
    channel in which it was said.
    """
    batches = [
        ("evening", drawn("I live in Lisbon.", "I'm vegan.")),
        ("later", drawn("I live in Berlin now.", session="later", start=100, closes="evening:0#0")),
        ("later", drawn("I'm not vegan any more.", session="later", start=110, closes="evening:0#1")),
    ]
    people = await store(database, ("evening", GUILD), ("later", GUILD))
    for number, (session, batch) in enumerate(batches):
        await people.store_facts(SessionId(session), batch, through=10 * (number + 1), is_current=lambda _: True)
    known = await people.facts_about(["id-Ada"], GUILD, history=True)
    assert {each.session_id: each.channel_id for each in known} == {"evening": 0, "later": 1}
    assert [each.superseded_by for each in known] == ["later:100#0", "later:110#0", None, None]
    assert held(await people.facts_about(["id-Ada"], GUILD)) == ["I live in Berlin now.", "I'm not vegan any more."]


async def test_a_batch_is_drawn_once(database: Database) -> None:
    """A batch is stored once, also if storing it is repeated, and the database knows how far facts were extracted."""
    people = await store(database, ("evening", GUILD))
    batch = drawn("I live in Lisbon.")
    evening, later = SessionId("evening"), drawn("I live in Rome.", start=5)
    assert len(await people.store_facts(evening, batch, through=10, is_current=lambda _: True) or ()) == 1
    assert await people.store_facts(evening, later, through=10, is_current=lambda _: True) == ()
    assert await people.store_facts(SessionId("evening"), ExtractedFacts(), through=20, is_current=lambda _: True) == ()
    assert await people.extracted_through(SessionId("evening")) == 20
    assert await people.extracted_through(SessionId("other")) == 0
    assert held(await people.facts_about(["id-Ada"], GUILD)) == ["I live in Lisbon."]


async def test_what_is_said_on_one_server_is_told_on_no_other(database: Database) -> None:
    """Facts from one server are neither found, superseded nor deleted on another."""
    people = await store(database, ("here", GUILD), ("there", OTHER))
    await people.store_facts(
        SessionId("here"), drawn("I live in Lisbon.", session="here"), through=10, is_current=lambda _: True
    )
    await people.store_facts(
        SessionId("there"),
        drawn("I live in Berlin.", session="there", start=50),
        through=10,
        is_current=lambda _: True,
    )
    assert held(await people.facts_about(["id-Ada"], GUILD)) == ["I live in Lisbon."]
    assert held(await people.facts_about(["id-Ada"], OTHER)) == ["I live in Berlin."]
    assert await people.facts_about(["id-Ada"], None) == ()
    assert await people.forget("id-Ada", OTHER) == ForgottenFacts(1, (SessionId("there"),))
    assert await people.forget("id-Ada", OTHER) == ForgottenFacts()
    assert held(await people.facts_about(["id-Ada"], GUILD)) == ["I live in Lisbon."]


async def test_that_somebody_deleted_their_facts_is_theirs(place: Place) -> None:
    """They see it in their file."""
    clock = FakeClock()
    async with Evening(place, clock=clock) as evening:
        await evening.say("I live in Lisbon.", "Ada")
        await evening.facts.forget("id-Ada", EVENING_GUILD)
        clock.advance(60.0)
        await evening.say("Good evening.", "Bob")
        files = PersonalDataStore(evening.database)

        async def excluded() -> object:
            return (await files.of("id-Ada"))["sessions_where_you_deleted_facts"]

        assert await excluded() == [evening.session_id]
        assert (await files.of("id-Bob"))["sessions_where_you_deleted_facts"] == []
