"""The list of sessions in which something was forgotten."""

from __future__ import annotations

from itertools import permutations
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import select

from bot.store.database import open_database
from bot.store.forgotten_sessions import NOTHING_MADE, forgotten_times, list_session, listed_at
from bot.store.tables import forgotten_sessions
from compaction.model import SessionId

if TYPE_CHECKING:
    from tests.bot.conftest import Place


@pytest.mark.asyncio
async def test_a_session_keeps_its_first_forgotten_turn_and_a_rising_time(place: Place) -> None:
    """In whatever order turns are forgotten, and whatever the clock shows."""
    calls = [(5, 100.7), (2, 300.0), (NOTHING_MADE, 50.0), (9, 300.5)]
    async with open_database(place) as database:
        for number, order in enumerate(permutations(calls)):
            name = SessionId(f"session-{number}")
            times: list[float] = []
            async with database.writing() as connection:
                await connection.execute(forgotten_sessions.delete())
                for from_seq, at in order:
                    await list_session(connection, database.key, name, from_seq=from_seq, at=at)
                    times.append(await listed_at(connection, database.key, name) or 0.0)
                assert await connection.scalar(select(forgotten_sessions.c.from_seq)) == 2
            assert times == sorted(set(times))
            assert all(time >= int(at) for time, (_, at) in zip(times, order, strict=True))


@pytest.mark.asyncio
async def test_the_times_are_those_of_sessions_that_lost_something(place: Place) -> None:
    """A session whose room only had to look again is not among them, nor is one that is not listed."""
    async with open_database(place) as database:
        async with database.writing() as connection:
            for name, from_seq in (("lost", 3), ("open", NOTHING_MADE)):
                await list_session(connection, database.key, SessionId(name), from_seq=from_seq, at=70.0)
        times = await forgotten_times(database)
    assert [times.last(each) > 0 for each in ("lost", "open", "another")] == [True, False, False]
    assert times.last("lost") == 70.0
