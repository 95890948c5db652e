"""Reminders are stored for each person and server, and go with their session and their person."""

from __future__ import annotations

from dataclasses import replace

from sqlalchemy import delete

from bot.store.attendance import AttendanceStore, Presence
from bot.store.database import Database, open_database
from bot.store.quoted_turns import QuotedTurn, QuoteStore
from bot.store.reminders import Reminder, ReminderStore
from bot.store.servers import OptOutStore
from bot.store.sessions import Sessions
from bot.store.tables import LARGEST_NUMBER, sessions
from tests.bot.conftest import Place
from tests.fakes.clock import FakeClock


async def begun(database: Database, guild_id: int) -> Reminder:
    """Return a reminder of a session that began on a server."""
    clock = FakeClock()
    opened = await Sessions(database, clock).open(guild_id=guild_id, channel_id=20, resume_within_s=60.0)
    return Reminder(opened.session.id, guild_id, 20, 1, clock.now() + 60.0, "Tea.", "Bo")


async def test_reminders_outlive_the_process_and_are_bounded(place: Place) -> None:
    """A person has so many on each server; an id is never given again."""
    async with open_database(place) as database:
        store, first = ReminderStore(database), await begun(database, 10)
        elsewhere = await begun(database, 11)
        assert await store.add(first, most=2)
        assert await store.add(replace(first, due_at=first.due_at - 30.0, what="", in_chat=True), most=2)
        assert not await store.add(first, most=2)
        assert await store.add(replace(first, person_id=1 << 60, channel_id=21), most=2)
        assert await store.add(elsewhere, most=2)
    async with open_database(place) as database:
        store = ReminderStore(database)
        sooner, later, other = await store.of(10)
        assert replace(later, id=0) == replace(first, people=("1",))
        assert (sooner.what, sooner.in_chat, other.person_id) == ("", True, 1 << 60)
        assert await store.of(10, 21) == (other,)
        assert {each.id for each in await store.due(first.due_at - 1.0)} == {sooner.id}
        assert len(await store.due(first.due_at)) == 4
        assert await store.delete(sooner.id)
        assert [await store.delete(each) for each in (sooner.id, 0, -1, LARGEST_NUMBER + 1)] == [False] * 4
        (newest,) = [each for each in await store.of(11) if await store.delete(each.id)]
        assert await store.add(elsewhere, most=2)
        assert (await store.of(11))[0].id > newest.id


async def test_they_may_have_words_of_whom_their_session_has_quoted(database: Database) -> None:
    """As of who was in it. A timer has nobody's words."""
    store, here, there = ReminderStore(database), await begun(database, 10), await begun(database, 11)
    for each, person in ((here, "7"), (there, "8")):
        await AttendanceStore(database).add(each.session_id, [Presence(person, 0.0, joined=True)])
    await QuoteStore(database).store([QuotedTurn(here.session_id, 0, there.session_id, None)])
    for each in (here, replace(here, what="", whom="")):
        assert await store.add(each, most=9)
    assert [each.people for each in await store.of(10)] == [("1", "7", "8"), ("1",)]


async def test_they_go_with_an_opt_out_and_with_their_session(database: Database) -> None:
    """An opt-out takes those of its server. A session that is deleted takes all of its own."""
    store, first = ReminderStore(database), await begun(database, 10)
    elsewhere = await begun(database, 11)
    for each in (first, replace(first, person_id=2), elsewhere):
        assert await store.add(each, most=9)
    await OptOutStore(database, FakeClock()).put(10, 1, out=True)
    assert [each.person_id for each in await store.of(10)] == [2]
    assert len(await store.of(11)) == 1
    await database.change(delete(sessions).where(sessions.c.id == first.session_id))
    assert await store.of(10) == ()
