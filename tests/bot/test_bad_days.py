"""Bad days of the real database through a whole session: while it is locked, full, read-only, slow or away, people are
heard, the channel gets one plain sentence, and /readyz is red. Afterwards every turn is stored once, and it is green.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager, asynccontextmanager
from functools import partial
from pathlib import Path

import aiohttp
import pytest

from bot.health import Health
from bot.monitoring.metrics import Metrics
from bot.monitoring.service_checks import HealthProbes, ServiceChecks
from bot.room.room_check import CHECK_ROOM_S
from bot.settings import WebSettings
from bot.store.database import Database, open_database
from bot.store.sessions import Sessions, check_writable
from bot.store.turns import SqlTurnStore
from bot.web.server import WebServer
from compaction.model import Seq
from tests.bot.conftest import Place
from tests.bot.room.room_scene import House, leave, living
from tests.bot.store.outages import BUSY_S, full, locked, read_only, slow
from tests.bot.web.served_page import FakeHost
from tests.fakes.clock import FakeClock
from tests.fakes.room_channel import ADA, BO
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.slow


def words(number: int) -> str:
    """Return what is said as number so and so, too much for the free space in the pages of a small SQLite file."""
    return f"This is what was said as number {number}: {' '.join(f'w{number}x{each}' for each in range(700))}."


class Day:
    """A room with people in it, its database, and what monitoring sees over HTTP."""

    def __init__(self, house: House, checks: ServiceChecks, http: aiohttp.ClientSession) -> None:
        self.house = house
        self._checks = checks
        self._http = http

    async def say(self, number: int) -> None:
        """Let somebody say something."""
        await self.house.say((ADA, BO)[number % 2].id, words(number))

    async def ready(self) -> tuple[int, set[str]]:
        """Return status and causes of /readyz after the room and the database have been looked at twice."""
        for _ in range(2):
            await self.house.pass_time(CHECK_ROOM_S, step_s=1.0)
            await self._checks.check()
        async with self._http.get("/readyz") as answer:
            return answer.status, {cause["cause"] for cause in (await answer.json())["causes"]}

    async def until_ready(self, status: int, causes: set[str]) -> None:
        """Wait until this is the answer. The room asks its database in other threads."""
        async with asyncio.timeout(PATIENCE_S):
            while await self.ready() != (status, causes):
                pass


@asynccontextmanager
async def a_day(place: Place, folder: Path) -> AsyncIterator[tuple[Day, Database]]:
    """Open a room on the database at `place`, and the probes."""
    clock = FakeClock()
    async with open_database(place, synchronous="normal", busy_timeout_s=BUSY_S) as database:
        house = House(database, clock)
        checks = ServiceChecks(partial(check_writable, database), folder, clock=clock)
        health = Health(clock)
        async with living(house) as (room, task):
            health.add_check(checks.faults)
            health.rooms = room.faults
            health.started()
            probes = HealthProbes(health, Metrics(health))
            async with WebServer(WebSettings(port=0), FakeHost(), probes=probes) as server:
                await server.start()
                async with aiohttp.ClientSession(f"http://127.0.0.1:{server.port}") as http:
                    yield Day(house, checks, http), database
            assert await leave(room, task) == "left"


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        (locked, "is locked: another process is writing to it. Stop the other bot or tool"),
        (full, "so nothing more can be stored"),
        (read_only, "cannot be written"),
        (slow, "did not answer in time"),
    ],
)
async def test_a_bad_day_loses_no_turn(
    place: Place, tmp_path: Path, bad: Callable[[Place, Database], AbstractContextManager[None]], said: str
) -> None:
    """While the database is so, three turns are heard and the channel is told once, with the remedy. /readyz is red. It
    is green when the database is well again, without anybody saying anything, and the channel is told. Every
    turn is stored once, in order.
    """
    async with a_day(place, tmp_path) as (day, database):
        await day.say(0)
        await day.until_ready(200, set())
        with bad(place, database):
            for number in (1, 2, 3):
                await day.say(number)
            await day.until_ready(503, {"database"})
            (told,) = day.house.channel.written
            assert "cannot save" in told
            assert said in told
        await day.until_ready(200, set())
        await day.say(4)
        assert len(day.house.channel.written) == 2
    await assert_stored(place, 5)


async def assert_stored(place: Place, count: int) -> None:
    """Check that so many turns of speech are stored, each once and in order, and that their session has ended."""
    clock = FakeClock()
    async with open_database(place) as database:
        (session,) = await Sessions(database, clock).recent()
        stored = await SqlTurnStore(database, clock).turns(session.id, Seq(0), Seq(99))
    assert session.ended_at is not None
    assert [turn.seq for turn in stored] == list(range(count))
    assert [turn.parts[0].text for turn in stored] == [words(number) for number in range(count)]
