"""Attendance in the database: who was there when, whose sessions it opens, and when it is deleted."""

from __future__ import annotations

from sqlalchemy import func, select

from bot.store.attendance import AttendanceStore, Presence
from bot.store.own_rows import forget_own_rows
from bot.store.sessions import Sessions
from bot.store.tables import attendance
from bot.viewers import Stay, Viewer
from tests.bot.evening import CHANNEL, GUILD, Evening

ADA, BOB = "3001", "3002"


async def count(evening: Evening) -> int:
    """Return how many stays are stored."""
    async with evening.database.reading() as connection:
        return await connection.scalar(select(func.count()).select_from(attendance)) or 0


async def ada_and_bob(evening: Evening) -> AttendanceStore:
    """Let both come, and Ada leave and come back."""
    store = AttendanceStore(evening.database)
    came = [Presence(ADA, 10.0, joined=True), Presence(BOB, 10.0, joined=True)]
    await store.add(evening.session_id, [*came, Presence(ADA, 20.0, joined=False), Presence(ADA, 30.0, joined=True)])
    return store


async def test_stays_are_read_as_they_were_stored(evening: Evening) -> None:
    """Coming twice is coming once. After a crash, who is not there any more was there until then."""
    store = await ada_and_bob(evening)
    await store.add(evening.session_id, [Presence(BOB, 15.0, joined=True)])
    assert await store.present(evening.session_id) == {ADA, BOB}
    await store.resume(evening.session_id, [ADA], at=40.0)
    (found,) = (await store.of([evening.session_id], [ADA, BOB])).values()
    assert found.stays == {ADA: (Stay(10.0, 20.0), Stay(30.0)), BOB: (Stay(10.0, 40.0),)}
    assert (found.guild_id, found.channel_id, found.goes_on) == (GUILD, CHANNEL, True)
    await evening.timeline.end()
    (found,) = (await store.of([evening.session_id], [ADA])).values()
    assert not found.goes_on


async def test_only_sessions_that_all_attended_are_searched(evening: Evening) -> None:
    """One of them who was not there is enough to leave a session out."""
    store = await ada_and_bob(evening)
    here = frozenset({CHANNEL})
    both = [Viewer(each, GUILD, here) for each in (ADA, BOB)]
    opened = Viewer("3003", GUILD, here, opened=here)
    assert [each.id for each in await store.readable([*both, opened], here)] == [evening.session_id]
    assert not await store.readable([*both, Viewer("3003", GUILD, here)])
    assert not await store.readable([Viewer(ADA, GUILD + 1, here)])
    assert not await store.readable(both, frozenset())


async def test_it_is_forgotten_in_one_session_alone(evening: Evening) -> None:
    """As an operator may do."""
    await ada_and_bob(evening)
    async with evening.database.writing() as connection:
        await forget_own_rows(connection, ADA, session_id=evening.session_id)
    assert await count(evening) == 1
    viewer = Viewer(ADA, GUILD, frozenset({CHANNEL}))
    await evening.say("The gate code is 4411.")
    assert await Sessions(evening.database, evening.clock).newest_readable(viewer) is None
