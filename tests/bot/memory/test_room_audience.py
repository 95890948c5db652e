"""What a room tells aloud of other sessions: only what everybody present may read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bot.memory.recall import Recall, RecallScope, RoomRecall
from bot.memory.room_audience import RoomAudience
from bot.readers import Reader
from bot.store.attendance import AttendanceStore, Presence
from bot.store.search.search import SqlRecallIndex
from bot.store.search.vector_store import VectorStore
from compaction.model import SessionId
from tests.bot.evening import CHANNEL, GUILD, Evening

if TYPE_CHECKING:
    from pathlib import Path

HERE = frozenset({CHANNEL})


def reader(name: str, *, opened: frozenset[int] = frozenset()) -> Reader:
    """Return somebody in the channel."""
    return Reader(f"id-{name}", GUILD, HERE, opened, CHANNEL)


async def test_a_quote_of_an_earlier_session_takes_that_all_present_were_there(tmp_path: Path) -> None:
    """Of the session that goes on everything is told: who is there can catch up with it."""
    place = tmp_path / "roomtone.db"
    async with Evening(place, name="first") as first:
        came = [Presence(f"id-{name}", first.clock.now(), joined=True) for name in ("Ada", "Bob")]
        await AttendanceStore(first.database).add(first.session_id, came)
        await first.say("The lantern is under the stairs.", "Ada")
        first.clock.advance(4.0)
        left = Presence("id-Bob", first.clock.now(), joined=False)
        await AttendanceStore(first.database).add(first.session_id, [left])
        await first.say("The lantern for Bob costs forty.", "Ada")
        await first.memory.end()
    async with Evening(place, name="second") as second:
        await second.say("We need a lantern today.", "Ada")
        present: list[Reader] = []
        room = RoomRecall(
            Recall(SqlRecallIndex(second.database, VectorStore(second.database)), second.store),
            RecallScope(SessionId("second"), GUILD, CHANNEL),
            audience=RoomAudience(lambda: present, AttendanceStore(second.database), SessionId("second")),
        )

        async def found() -> str:
            hits = await room.memory_search("lantern")
            return " ".join(turn.text for hit in hits for turn in hit.turns)

        for people, stairs, forty in (
            ([reader("Ada")], True, True),
            ([reader("Ada"), reader("Bob")], True, False),
            ([reader("Ada"), reader("Cy")], False, False),
            ([reader("Ada"), reader("Cy", opened=HERE)], True, True),
            ([], False, False),
        ):
            present[:] = people
            told = await found()
            assert ("stairs" in told, "forty" in told) == (stairs, forty), people
            assert "today" in told
