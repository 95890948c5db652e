"""Who shared a screen and never spoke is found, sees their notes, is forgotten, and is left out once they opt out."""

from __future__ import annotations

from bot.memory.session_views import SessionViews
from bot.store.history import SessionHistory
from bot.store.search.vector_store import VectorStore
from bot.store.servers import OptOutStore
from bot.store.sessions import Sessions
from compaction.model import Note, NoteId, TurnKind
from tests.bot.conftest import Place
from tests.bot.evening import GUILD, Evening

CY = "2003"
SCREEN = "The bank's page: balance 4,210 euros, overdraft 300 euros."


async def show(evening: Evening, name: str = "n", *, who: str = "Cy", person_id: str | None = CY) -> None:
    """Take a note of somebody's screen."""
    await evening.timeline.add_note(Note(NoteId(name), evening.clock.now(), who, SCREEN, person_id=person_id))


async def test_who_opts_out_is_known_wherever_words_are_shown(evening: Evening, place: Place) -> None:
    """In the session of their screen, and in a later one of the same server, in which the bot may tell of it: what the
    bot said there since is not read to anybody, and a note that has no embedding yet gets none.
    """
    await evening.say("Good evening.", "Ada")
    await show(evening)
    await evening.timeline.end()
    async with Evening(place, name="later", clock=evening.clock) as later:
        await later.say("What did we see?", "Ada")
        await later.say("A bank's page.", "Roomtone", kind=TurnKind.ASSISTANT)
        await OptOutStore(later.database, later.clock).put(GUILD, int(CY), out=True)

        async def withheld(_guild_id: int) -> frozenset[str]:
            return frozenset({CY})

        sessions, history = Sessions(later.database, later.clock), SessionHistory(later.database)
        views = SessionViews(sessions, later.store, withheld=withheld)
        for session_id in (evening.session_id, later.session_id):
            assert await history.quotable(session_id, frozenset({CY, "9"})) == {CY}
            assert CY in (await later.store.load(session_id)).quotable
            stored = await sessions.find(session_id)
            assert stored is not None
            read = await views.read(stored)
            assert [turn.kind for turn in read.turns] == [TurnKind.SPEECH]
        waiting = await VectorStore(later.database).unembedded(limit=9)
        assert [text for _, text in waiting if text and "overdraft" in text] == []
