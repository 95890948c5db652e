"""A reminder for which somebody has pressed is written when the bot is not there to say it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import pytest
import pytest_asyncio

from bot.channel.port import ChatError
from bot.participation.guild_state import GuildStates
from bot.posts.due_reminders import TRIED_S, DueReminders
from bot.posts.renewal import MessageEditor
from bot.reminders import LATE_S, NOT_OF_WHAT
from bot.store.attendance import AttendanceStore, Presence
from bot.store.database import open_database
from bot.store.reminders import Reminder, ReminderStore
from bot.store.sessions import Sessions
from tests.fakes.clock import FakeClock
from tests.fakes.room_channel import FakeRoomChannel


@dataclass
class Desk:
    """The store with a reminder that is due in a minute. `here`: where the bot is. `out`: who opted out."""

    store: ReminderStore
    clock: FakeClock
    reminder: Reminder
    channel: FakeRoomChannel
    here: FakeRoomChannel | None = None
    out: set[str] = field(default_factory=set)

    async def withheld_on(self, guild_id: int) -> set[str]:
        return self.out

    def find_channel(self, guild_id: int, channel_id: int) -> FakeRoomChannel:
        return self.channel

    async def look(self, late_s: float) -> int:
        """Let the bot look so long after the time of the reminder. Return how many are left."""
        self.clock.advance(self.reminder.due_at + late_s - self.clock.now())
        reminders = DueReminders(
            self.store,
            lambda _: self.here,
            cast("MessageEditor", self),
            cast("GuildStates", self),
            clock=self.clock,
        )
        await reminders.run_once()
        return len(await self.store.of(10))


@asynccontextmanager
async def desk(file: Path, *, in_chat: bool = True) -> AsyncIterator[Desk]:
    clock = FakeClock()
    async with open_database(file) as database:
        sessions = Sessions(database, clock)
        opened = await sessions.open(guild_id=10, channel_id=20, resume_within_s=60.0)
        await AttendanceStore(database).add(opened.session.id, [Presence("7", clock.now(), joined=True)])
        reminder = Reminder(opened.session.id, 10, 20, 1, clock.now() + 60.0, "call *Anna*", in_chat=in_chat)
        assert await sessions.reminders.add(reminder, most=9)
        yield Desk(sessions.reminders, clock, reminder, FakeRoomChannel())


@pytest_asyncio.fixture
async def there(file: Path) -> AsyncIterator[Desk]:
    """A reminder for a chat that is due in a minute."""
    async with desk(file) as made:
        yield made


async def test_it_is_written_with_a_ping_to_who_asked(there: Desk) -> None:
    """Once, when it is due, as far as they may write there themselves."""
    assert await there.look(-1.0) == 1
    assert await there.look(0.0) == 0
    assert there.channel.chat.posted == ["<@1>, here is your reminder: call Anna."]
    assert (there.channel.chat.calls, there.channel.asked_by) == ([True], [1])


async def test_each_is_looked_at_right_before_it_is_written(there: Desk) -> None:
    """Somebody is forgotten while Discord takes the one before."""
    assert await there.store.add(replace(there.reminder, due_at=there.reminder.due_at + 1.0), most=9)
    _, second = await there.store.of(10)
    post = there.channel.chat.post

    async def slowly(*given: Any, **how: Any) -> None:
        await there.store.delete(second.id)
        await post(*given, **how)

    there.channel.chat.post = slowly  # type: ignore[method-assign]
    assert await there.look(2.0) == 0
    assert len(there.channel.chat.posted) == 1


@pytest.mark.parametrize(("out", "told"), [("7", [f"<@1>, your time is up. {NOT_OF_WHAT}"]), ("1", [])])
async def test_nothing_is_written_of_who_opted_out(there: Desk, out: str, told: list[str]) -> None:
    """Neither words that may be theirs, because they were there, nor what they asked for themselves."""
    there.out.add(out)
    await there.look(0.0)
    assert there.channel.chat.posted == told


async def test_it_is_left_to_the_room_that_is_there(there: Desk) -> None:
    """A room elsewhere on the server does not say it."""
    there.here = there.channel
    assert await there.look(0.0) == 1
    there.here = FakeRoomChannel(channel_id=21)
    assert await there.look(1.0) == 0
    assert len(there.channel.chat.posted) == 1


async def test_what_nobody_pressed_for_is_dropped_after_a_day(file: Path) -> None:
    """Nothing is written of it."""
    async with desk(file, in_chat=False) as there:
        assert await there.look(LATE_S) == 1
        assert await there.look(LATE_S + 1.0) == 0
        assert there.channel.chat.posted == []


@pytest.mark.parametrize(("late_s", "left"), [(0.0, 1), (TRIED_S + 1.0, 0)])
async def test_what_discord_does_not_take_is_tried_for_some_minutes(there: Desk, late_s: float, left: int) -> None:
    """Who may not write there any more is not pinged for ever; neither is a channel that is gone for a moment."""
    there.channel.chat.error = ChatError("Not now.")
    assert await there.look(late_s) == left


async def test_somebody_else_is_named_and_who_asked_is_called(there: Desk) -> None:
    """The name is what somebody said, and calls nobody."""
    assert await there.store.add(replace(there.reminder, whom="@everyone"), most=9)
    assert await there.look(0.0) == 0
    assert "<@1> asked" in there.channel.chat.posted[1]
