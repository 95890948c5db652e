"""The list of forgotten sessions refuses what was made of them before, and nothing else."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import permutations
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import select

from bot.store.database import open_database
from bot.store.forgotten_sessions import NOTHING_MADE, forgotten_times, is_forgotten, list_session, listed_at
from bot.store.tables import forgotten_sessions
from compaction.memory.export_format import read_record, record_json
from compaction.memory.segment_record import make_record
from compaction.model import SessionId
from tests.compaction.segments import batch, fact

if TYPE_CHECKING:
    from tests.bot.conftest import Place

SEGMENT = batch(1, fact(12, "We decided to keep the notes in the shed."))
RECORD = make_record(SEGMENT, superseded=frozenset(), task_completed=False, at=50.0)


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
@pytest.mark.parametrize(
    ("session_id", "from_seq", "at", "forgotten"),
    [
        (RECORD.session_id, RECORD.end_turn, 51.0, True),
        (RECORD.session_id, 0, 51.0, True),
        (RECORD.session_id, RECORD.end_turn + 1, 51.0, False),
        (RECORD.session_id, NOTHING_MADE, 51.0, False),
        (RECORD.session_id, 0, 50.0, False),
        (SessionId("another"), 0, 51.0, False),
    ],
)
async def test_what_was_made_before_of_forgotten_turns_is_forgotten(
    place: Place, session_id: SessionId, from_seq: int, at: float, *, forgotten: bool
) -> None:
    """A record that ends before the first forgotten turn, or that was made afterwards, is not."""
    async with open_database(place) as database, database.writing() as connection:
        await list_session(connection, database.key, session_id, from_seq=from_seq, at=at)
        assert await is_forgotten(connection, database.key, RECORD) is forgotten


@pytest.mark.asyncio
@pytest.mark.parametrize(("made_at", "forgotten"), [(50.2, True), (50.7, False), (50.9, False)])
async def test_an_export_of_the_same_second_is_told_from_what_was_made_afterwards(
    place: Place, made_at: float, *, forgotten: bool
) -> None:
    """Also when it was written to a file meanwhile."""
    exported = read_record(json.loads(json.dumps(record_json(replace(RECORD, compressed_at=made_at)))))
    async with open_database(place) as database, database.writing() as connection:
        await list_session(connection, database.key, RECORD.session_id, from_seq=0, at=50.7)
        assert await is_forgotten(connection, database.key, exported) is forgotten


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
