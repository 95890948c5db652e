"""/reminders on the local Discord: everybody sees and deletes their own; managers delete all, and read their own."""

from __future__ import annotations

from datetime import UTC
from functools import partial
from typing import TYPE_CHECKING
from unittest.mock import AsyncMock, Mock

from bot.discord.commands.reminders import DELETED, NONE_KEPT, NOT_THERE, add_reminders
from bot.store.reminders import Reminder, ReminderStore
from bot.texts.text import in_language
from tests.bot.discord.remembered import ADA, BEN, CHLOE, LOUNGE, remembered, seen

if TYPE_CHECKING:
    from pathlib import Path

    from bot.discord.client import AddCommands
    from bot.memory.session_views import SessionViews
    from tests.bot.evening import Evening


async def test_people_see_their_own_and_managers_that_there_are_others(tmp_path: Path) -> None:
    """Ada manages the server. What somebody said is escaped, and not shown once they opted out. Nobody deletes what is
    another's.
    """

    out = set[str]()
    participation = Mock(withheld_on=AsyncMock(return_value=out))

    def command(evening: Evening, _: SessionViews) -> list[AddCommands]:
        return [partial(add_reminders, store=ReminderStore(evening.database), participation=participation, zone=UTC)]

    async with remembered(tmp_path, command) as here:
        store = ReminderStore(here.evening.database)
        await here.say(BEN, "Let us have tea.")
        guild_id, now = here.local.guild.id, here.evening.clock.now()
        for person, what in ((BEN, "make *tea*"), (BEN, ""), (ADA, "call Anna")):
            reminder = Reminder(here.evening.session_id, guild_id, LOUNGE, person, now + 600.0, what)
            assert await store.add(reminder, most=9)
        own = seen(await here.use(BEN, "reminders"))
        assert own.count("\n- <t:") == 2
        assert "make \\*tea\\*" in own
        all_of_them = seen(await here.use(ADA, "reminders"))
        assert all_of_them.count("\n- <t:") == 3
        assert "Anna" in all_of_them
        assert all_of_them.count(f"<@{BEN}>") == 2
        assert "tea" not in all_of_them
        assert seen(await here.use(CHLOE, "reminders")) == in_language(NONE_KEPT, "de")
        out.add(str(CHLOE))
        assert "tea" not in seen(await here.use(BEN, "reminders"))
        out.clear()

        offered = await here.local.suggest(BEN, "reminders", "delete", channel_id=LOUNGE)
        assert len(offered) == 2
        of_ada = str((await store.of(guild_id))[2].id)
        for wanted, said in ((of_ada, NOT_THERE), ("x", NOT_THERE), (offered[0][1], DELETED)):
            assert seen(await here.use(BEN, "reminders", delete=wanted)) == said
        for each in await store.of(guild_id):
            assert seen(await here.use(ADA, "reminders", delete=str(each.id))) == DELETED
        assert seen(await here.use(BEN, "reminders")) == NONE_KEPT
