"""Accesses are counted once each, and quotes are stored with the first turn that may tell of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sqlalchemy import select

from bot.memory.access_log import AccessLog
from bot.store.database import Database
from bot.store.quoted_turns import QuoteStore
from bot.store.tables import quoted_turns
from bot.store.tiers import TierStore
from compaction.memory.passage import PassageId, PassageKind
from compaction.memory.people import PersonFact, person_facts_part
from compaction.memory.recall import RecallHit
from compaction.model import Seq, SessionId
from compaction.payload import PartKind, make_part
from tests.bot.conftest import Place
from tests.bot.evening import Evening
from tests.fakes.clock import FakeClock

S = SessionId("s")
OTHER = SessionId("other")


class CountedTiers(TierStore):
    """Keeps what is counted."""

    def __init__(self) -> None:
        self.counted: list[tuple[int, int]] = []

    async def count_accesses(self, found: Mapping[SessionId, Iterable[tuple[int, int]]], at: float) -> None:
        """See `TierStore.count_accesses`."""
        self.counted += [each for one in found.values() for each in one]


async def test_quotes_in_a_section_of_their_own_count() -> None:
    """In speech-to-speech all quotes stand in one part."""
    tiers = CountedTiers()
    made = [
        make_part("system", kind, "quotes", refs=refs)
        for kind, refs in (
            (PartKind.RECALL, ("turn:s#4", "turn:s#5")),
            (PartKind.CONTINUITY, ("turn:s#7",)),
            (PartKind.SUMMARY, ("turn:s#9",)),
        )
    ]
    accesses = AccessLog(tiers, FakeClock())
    accesses.note_quotes(made, S, from_seq=9)
    for _ in range(2):
        await accesses.write()
    assert tiers.counted == [(4, 4), (5, 5), (7, 7)]


async def stored(database: Database) -> list[tuple[str, int, str, int | None]]:
    """Return the stored quotes."""
    async with database.reading() as connection:
        found = await connection.execute(select(quoted_turns))
        rows = [(row.session_id, row.from_seq, row.source_session, row.source_seq) for row in found]
    return sorted(rows, key=str)


async def test_quotes_of_other_sessions_are_stored_once(place: Place) -> None:
    """Turns by their number, notes and summaries as the whole of their session, facts by the turn that states them.
    What is of the session itself, or of one that is gone, is left out.
    """
    async with Evening(place) as evening, Evening(place, name=OTHER, clock=evening.clock, channel=702) as other:
        here = evening.session_id
        await other.say("I live in Lisbon.")
        fact = PersonFact("fact", "id-Ada", "Ada", "I live in Lisbon.", OTHER, Seq(0), 1.0)
        quotes = AccessLog(evening.tier_store, evening.clock, QuoteStore(evening.database))
        refs = (f"turn:{OTHER}#4", f"note:{OTHER}#n", f"turn:{here}#1", "turn:gone#2")
        payload = [
            make_part("user", PartKind.RECALL, "…", refs=refs),
            person_facts_part([fact], {}),
            make_part("user", PartKind.SUMMARY, "…", refs=(f"turn:{OTHER}#9",)),
        ]
        for from_seq in (3, 8):
            quotes.note_quotes(payload, here, from_seq=from_seq)
            await quotes.write()
        hit = RecallHit(PassageId(1), PassageKind.SEGMENT, OTHER, None, None, None, (), "", 1.0, "x", 1.0)
        quotes.note_quoted_hits([hit], OTHER, from_seq=2)
        await quotes.write()
        assert await stored(evening.database) == [(here, 3, OTHER, each) for each in (0, 4, None)]
