"""A sent text can be found by its digest until it is forgotten."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bot.store.database import open_database
from bot.store.prompts import PromptStore, forget_sent_texts
from bot.store.sessions import Sessions
from bot.store.turns import SqlTurnStore
from compaction.model import SessionId
from compaction.payload import text_digest
from tests.compaction.turn_store_contract import EVENING, fill
from tests.fakes.clock import FakeClock

if TYPE_CHECKING:
    from tests.bot.conftest import Place


@pytest.mark.asyncio
async def test_prompts_are_kept_for_good_and_sent_texts_with_their_session(place: Place) -> None:
    """Prompts are stored once and kept. Sent texts are deleted with their session, and not stored for an
    unknown one.
    """
    async with open_database(place, synchronous="normal") as database:
        await fill(SqlTurnStore(database, FakeClock()), 1)
        shelf = PromptStore(database)
        await shelf.store_prompts(["You take part.", "You take part."])
        await shelf.store_sent_texts(
            EVENING, ["Ada lives in Lisbon.", "Ada lives in Lisbon."], is_current=lambda _: True
        )
        await shelf.store_sent_texts(SessionId("nowhere"), ["Hello."], is_current=lambda _: True)
        asked = [text_digest(text) for text in ("You take part.", "Ada lives in Lisbon.", "Hello.")]
        assert await shelf.prompts_by_digest(asked) == {asked[0]: "You take part."}
        assert await shelf.sent_texts(EVENING, asked) == {asked[1]: "Ada lives in Lisbon."}
        assert await shelf.sent_texts(SessionId("nowhere"), asked) == {}
        await Sessions(database, FakeClock()).delete(EVENING)
        assert await shelf.sent_texts(EVENING, asked) == {}
        assert await shelf.prompts_by_digest(asked) == {asked[0]: "You take part."}


@pytest.mark.asyncio
async def test_all_sent_texts_go_when_anything_is_forgotten(place: Place) -> None:
    """When anything is forgotten, all sent texts are deleted, because it is unknown whose words they contain. Prompts
    contain nobody's words and stay.
    """
    async with open_database(place, synchronous="normal") as database:
        await fill(SqlTurnStore(database, FakeClock()), 1)
        shelf = PromptStore(database)
        await shelf.store_prompts(["You take part."])
        await shelf.store_sent_texts(EVENING, ["Ada lives in Lisbon."], is_current=lambda _: True)
        async with database.writing() as connection:
            await forget_sent_texts(connection)
        assert await shelf.sent_texts(EVENING, [text_digest("Ada lives in Lisbon.")]) == {}
        assert len(await shelf.prompts_by_digest([text_digest("You take part.")])) == 1
