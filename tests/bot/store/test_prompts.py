"""A sent prompt can be read as it was sent, as long as its session is stored and nothing of its server is forgotten."""

from __future__ import annotations

import pytest

from bot.store import prompts as prompts_module
from bot.store.database import Database
from bot.store.prompts import PromptStore, forget_prompts
from bot.store.sessions import Sessions
from bot.store.turns import SqlTurnStore
from compaction.model import SessionId
from tests.bot.conftest import Place
from tests.bot.evening import GUILD, Evening
from tests.bot.store.sent_prompts import a_prompt
from tests.compaction.turn_store_contract import EVENING, fill
from tests.fakes.clock import FakeClock


async def test_a_prompt_is_read_as_it_was_sent_and_goes_with_its_session(database: Database) -> None:
    """Nothing is stored for a session that is not, or if the session has changed since."""
    await fill(SqlTurnStore(database, FakeClock()), 1)
    prompts = PromptStore(database)
    first, second = a_prompt(), a_prompt(answer_to=5)
    assert await prompts.store([first, second], is_current=lambda _: True)
    assert not await prompts.store([a_prompt(answer_to=7)], is_current=lambda _: False)
    assert await prompts.store([a_prompt(SessionId("nowhere"))], is_current=lambda _: True)
    assert await prompts.figures(EVENING) == (first.figures, second.figures)
    assert first.figures.evicted == (0, 1)
    assert await prompts.sent_for(EVENING, 3) == (first,)
    assert await prompts.sent_for(SessionId("nowhere"), 3) == ()
    await Sessions(database, FakeClock()).delete(EVENING)
    assert await prompts.figures(EVENING) == ()


async def test_only_the_newest_prompts_of_a_session_are_kept(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A session of weeks does not fill the disk."""
    monkeypatch.setattr(prompts_module, "MOST_KEPT", 3)
    await fill(SqlTurnStore(database, FakeClock()), 1)
    prompts = PromptStore(database)
    for number in range(5):
        await prompts.store([a_prompt(answer_to=number)], is_current=lambda _: True)
    assert [each.answer_to for each in await prompts.figures(EVENING)] == [2, 3, 4]


async def test_all_prompts_of_a_server_go_when_anything_of_it_is_forgotten(evening: Evening, place: Place) -> None:
    """It is unknown whose words they contain; those of other servers contain nothing of this one."""
    async with Evening(place, name="elsewhere", clock=evening.clock, channel=900, guild=GUILD + 1) as elsewhere:
        for each in (evening, elsewhere):
            await each.prompts.store([a_prompt(each.session_id)], is_current=lambda _: True)
        async with evening.database.writing() as connection:
            assert await forget_prompts(connection, [GUILD]) == 1
        assert await evening.prompts.sent_for(evening.session_id, 3) == ()
        assert len(await elsewhere.prompts.sent_for(elsewhere.session_id, 3)) == 1
