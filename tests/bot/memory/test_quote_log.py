"""What prompts and tools quote from other sessions is stored with the first turn that may tell of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from sqlalchemy import insert, select

from bot.memory.quote_log import QuoteLog
from bot.store.quoted_turns import QuoteStore
from bot.store.tables import person_facts, quoted_turns
from compaction.memory.passage import PassageId, PassageKind
from compaction.memory.recall import RecallHit
from compaction.model import SessionId
from compaction.payload import PartKind, make_part
from tests.bot.evening import Evening

if TYPE_CHECKING:
    from bot.store.database import Database
    from tests.bot.conftest import Place

OTHER = SessionId("other")


async def stored(database: Database) -> list[tuple[str, int, str, int | None]]:
    """Return the stored quotes."""
    async with database.reading() as connection:
        found = await connection.execute(select(quoted_turns))
        rows = [(row.session_id, row.from_seq, row.source_session, row.source_seq) for row in found]
    return sorted(rows, key=str)


@pytest.mark.asyncio
async def test_quotes_of_other_sessions_are_stored_once(place: Place) -> None:
    """Turns by their number, notes and summaries as the whole of their session, facts by the turn that states them.
    What is of the session itself, or of one that is gone, is left out.
    """
    async with Evening(place) as evening, Evening(place, name=OTHER, clock=evening.clock, channel=702) as other:
        here = evening.session_id
        await other.say("I live in Lisbon.")
        about = {"session_id": OTHER, "turn_seq": 0, "person_id": "id-Ada", "name": "Ada", "text": "x", "at": 1.0}
        async with evening.database.writing() as connection:
            await connection.execute(insert(person_facts).values(about | {"id": "fact"}))
        quotes = QuoteLog(QuoteStore(evening.database))
        refs = (f"turn:{OTHER}#4", f"note:{OTHER}#n", f"turn:{here}#1", "turn:gone#2")
        payload = [
            make_part("user", PartKind.RECALL, "…", refs=refs),
            make_part("user", PartKind.PARTICIPANTS, "…", refs=("fact", "text:0123")),
            make_part("user", PartKind.SUMMARY, "…", refs=(f"turn:{OTHER}#9",)),
        ]
        for from_seq in (3, 8):
            quotes.note_payload(payload, here, from_seq=from_seq)
            await quotes.write()
        hit = RecallHit(PassageId(1), PassageKind.SEGMENT, OTHER, None, None, None, (), "", 1.0, "x", 1.0)
        quotes.note_hits([hit], OTHER, from_seq=2)
        assert not quotes.waiting
        assert await stored(evening.database) == [(here, 3, OTHER, each) for each in (0, 4, None)]
