"""A sent text can be found by its digest until it is forgotten, and a prompt as long as a session that was sent it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from sqlalchemy import func, select

from bot.store.database import open_database
from bot.store.prompts import PromptStore, forget_sent_texts
from bot.store.sessions import Sessions
from bot.store.speech_forgetting import SpeechForgetter
from bot.store.tables import sent_prompts
from bot.store.turns import SqlTurnStore
from compaction.model import SessionId
from compaction.payload import PartKind, make_part, text_digest
from tests.bot.evening import GUILD, Evening
from tests.compaction.turn_store_contract import EVENING, T0, fill
from tests.fakes.clock import FakeClock

if TYPE_CHECKING:
    from bot.store.database import Database
    from tests.bot.conftest import Place

OTHER = SessionId("other")
OLD, OURS, THEIRS = "You took part.", "You take part.", "Be kind to Ada."


async def kept(database: Database, *texts: str) -> list[str]:
    """Return those of these prompts that are stored."""
    found = await PromptStore(database).prompts_by_digest([text_digest(text) for text in texts])
    assert all(text_digest(text) == digest for digest, text in found.items())
    return [text for text in texts if text in found.values()]


@pytest.mark.asyncio
async def test_texts_are_stored_once_and_go_with_their_session(place: Place) -> None:
    """Prompts are stored once, and go with the last session that was sent them. Other texts go with their session.
    Nothing is stored for an unknown one.
    """
    async with open_database(place, synchronous="normal") as database:
        for session_id in (EVENING, OTHER):
            await fill(SqlTurnStore(database, FakeClock()), 1, session_id=session_id)
        prompts, sessions = PromptStore(database), Sessions(database, FakeClock())
        await prompts.store_prompts(EVENING, [OURS, OURS, OLD], sent_at=T0)
        await prompts.store_prompts(OTHER, [OURS], sent_at=T0)
        await prompts.store_prompts(SessionId("nowhere"), [THEIRS], sent_at=T0)
        await prompts.store_sent_texts(
            EVENING, ["Ada lives in Lisbon.", "Ada lives in Lisbon."], is_current=lambda _: True
        )
        await prompts.store_sent_texts(SessionId("nowhere"), ["Hello."], is_current=lambda _: True)
        told = text_digest("Ada lives in Lisbon.")
        assert await prompts.sent_texts(EVENING, [told, text_digest("Hello.")]) == {told: "Ada lives in Lisbon."}
        assert await prompts.sent_texts(SessionId("nowhere"), [told, text_digest("Hello.")]) == {}
        assert await kept(database, OLD, OURS, THEIRS) == [OLD, OURS]
        await sessions.delete(EVENING)
        assert await prompts.sent_texts(EVENING, [told]) == {}
        assert await kept(database, OLD, OURS) == [OURS]
        await sessions.delete(OTHER)
        assert await kept(database, OLD, OURS) == []


@pytest.mark.asyncio
async def test_all_sent_texts_of_a_server_go_when_anything_of_it_is_forgotten(place: Place) -> None:
    """It is unknown whose words they contain; those of other servers contain nothing of this one. Prompts contain no
    words of conversations, and stay.
    """
    sent = "Ada lives in Lisbon."
    async with (
        Evening(place) as evening,
        Evening(place, name="elsewhere", clock=evening.clock, channel=900, guild=GUILD + 1) as elsewhere,
    ):
        await evening.prompts.store_prompts(evening.session_id, [OURS], sent_at=T0)
        for each in (evening, elsewhere):
            await each.say("Good evening.")
            await each.prompts.store_sent_texts(each.session_id, [sent], is_current=lambda _: True)
        async with evening.database.writing() as connection:
            assert await forget_sent_texts(connection, [GUILD]) == 1
        digest = text_digest(sent)
        assert await evening.prompts.sent_texts(evening.session_id, [digest]) == {}
        assert await elsewhere.prompts.sent_texts(elsewhere.session_id, [digest]) == {digest: sent}
        assert await kept(evening.database, OURS) == [OURS]


@pytest.mark.asyncio
async def test_prompts_go_with_the_session_in_which_somebody_was_forgotten(place: Place) -> None:
    """One that other sessions are sent too stays, and so does one that is sent again, because it is still in use."""
    async with (
        Evening(place) as evening,
        Evening(place, name="elsewhere", clock=evening.clock, channel=900, guild=GUILD + 1) as elsewhere,
    ):
        await evening.say("Good evening.", "Ada")
        await elsewhere.say("Good evening.", "Bob")
        await elsewhere.prompts.store_prompts(elsewhere.session_id, [OURS], sent_at=T0)
        sent = [make_part("system", PartKind.SYSTEM, text) for text in (OURS, THEIRS)]
        evening.upkeep.on_payload_sent(sent)
        await evening.upkeep.run_once()
        forgetting = SpeechForgetter(evening.database, evening.clock)
        (ada,) = await forgetting.find("Ada")
        await forgetting.forget(ada)
        assert await kept(evening.database, OURS, THEIRS) == [OURS]
        async with evening.database.reading() as connection:
            assert await connection.scalar(select(func.count()).select_from(sent_prompts)) == 1
        await evening.upkeep.run_once()
        evening.upkeep.on_payload_sent(sent)
        await evening.upkeep.run_once()
        assert await kept(evening.database, OURS, THEIRS) == [OURS, THEIRS]
