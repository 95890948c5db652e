"""Bad days of the real database through a whole session: while it is locked, full, read-only, slow or away, people are
heard, the channel gets one plain sentence, and /readyz is red. Afterwards every turn is stored once, and it is green.
"""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import asynccontextmanager, closing, contextmanager
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any

import aiohttp
import psycopg
import pytest
from psycopg import sql
from pydantic import SecretStr
from sqlalchemy import event

from bot.health import Health
from bot.monitoring.probes import HealthProbes
from bot.monitoring.service_checks import ServiceChecks
from bot.room.room import CHECK_ROOM_S
from bot.settings import WebSettings
from bot.store.database import Database, open_database
from bot.store.sessions import Sessions
from bot.store.turns import SqlTurnStore
from bot.store.write_check import check_writable
from bot.web.server import WebServer
from compaction.model import Mode, Seq, TurnKind, TurnPart
from compaction.session import SessionMemory
from compaction.settings import CompactionSettings
from compaction.summary.extractive import ExtractiveSummariser
from tests.bot.room.test_room import House, ended, living
from tests.bot.web.test_server import FakeHost
from tests.compaction.turn_store_contract import EVENING
from tests.fakes.clock import FakeClock
from tests.fakes.place import ADA, BO

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

    from tests.bot.conftest import Place

pytestmark = pytest.mark.slow

HOUR_S = 3600.0
# A write that finds the database locked gives up soon.
BUSY_S = 0.05


# -- what can be wrong with a database ------------------------------------------------------------------------------


@contextmanager
def locked(place: Place, database: Database) -> Iterator[None]:
    """Another program holds the write lock."""
    del database
    if isinstance(place, SecretStr):
        with psycopg.connect(place.get_secret_value()) as other:
            other.execute("LOCK TABLE turns")
            yield
        return
    with closing(sqlite3.connect(place, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield
        other.execute("ROLLBACK")


@contextmanager
def full(place: Place, database: Database) -> Iterator[None]:
    """The disk is full: SQLite may take no page more; a PostgreSQL server reports it for each new turn."""
    if isinstance(place, SecretStr):
        with refused_by_server(place, "RAISE EXCEPTION 'could not extend file' USING ERRCODE = '53100'"):
            yield
        return
    # A limit below the present size means the present size.
    with pragma(database, "max_page_count = 1", afterwards="max_page_count = 1073741823"):
        yield


@contextmanager
def read_only(place: Place, database: Database) -> Iterator[None]:
    """Nothing may be written: a file without rights; a server that has become a replica."""
    if isinstance(place, SecretStr):
        with altered(place, "SET default_transaction_read_only = on", "RESET default_transaction_read_only"):
            yield
        return
    with pragma(database, "query_only = ON", afterwards="query_only = OFF"):
        yield


@contextmanager
def slow(place: Place, database: Database) -> Iterator[None]:
    """A turn that is stored takes longer than a transaction may."""
    before, database._deadline_s = database._deadline_s, BUSY_S
    if isinstance(place, SecretStr):
        with refused_by_server(place, "PERFORM pg_sleep(600)"):
            yield
    else:
        with delayed(database):
            yield
    database._deadline_s = before


@contextmanager
def pragma(database: Database, setting: str, *, afterwards: str) -> Iterator[None]:
    """Give each connection of a SQLite database a setting before it is used, and another one afterwards."""
    engine, now = database.dialect.writers.sync_engine, [setting]

    def on_checkout(connection: Any, *_: object) -> None:
        cursor = connection.cursor()
        cursor.execute(f"PRAGMA {now[0]}")
        cursor.close()

    event.listen(engine, "checkout", on_checkout)
    yield
    now[0] = afterwards


@contextmanager
def delayed(database: Database) -> Iterator[None]:
    """Let each new turn wait for a disk that does not answer."""
    engine = database.dialect.writers.sync_engine
    answers = asyncio.Event()

    def on_execute(connection: Any, _cursor: object, statement: str, *_: object) -> None:
        if statement.startswith("INSERT INTO turns"):
            connection.connection.dbapi_connection.await_(answers.wait())

    event.listen(engine, "before_cursor_execute", on_execute)
    yield
    event.remove(engine, "before_cursor_execute", on_execute)


@contextmanager
def refused_by_server(place: SecretStr, statement: str) -> Iterator[None]:
    """Let the server run a statement before each new turn."""
    with psycopg.connect(place.get_secret_value(), autocommit=True) as owner:
        body = sql.Literal(f"BEGIN {statement}; RETURN NEW; END")
        owner.execute(sql.SQL("CREATE FUNCTION bad_day() RETURNS trigger LANGUAGE plpgsql AS {}").format(body))
        owner.execute("CREATE TRIGGER bad_day BEFORE INSERT ON turns FOR EACH ROW EXECUTE FUNCTION bad_day()")
        yield
        owner.execute("DROP TRIGGER bad_day ON turns")
        owner.execute("DROP FUNCTION bad_day")


@contextmanager
def altered(place: SecretStr, setting: str, reset: str) -> Iterator[None]:
    """Alter the database for new connections, and end the present ones, as when a server becomes a replica."""
    with psycopg.connect(place.get_secret_value(), autocommit=True) as owner:
        name = sql.Identifier(owner.info.dbname)

        def alter(how: str) -> None:
            # It runs in a transaction that may write, whatever new ones may.
            owner.execute("SET default_transaction_read_only = off")
            owner.execute(sql.SQL("ALTER DATABASE {} ").format(name) + sql.SQL(how))
            owner.execute(
                "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )

        alter(setting)
        yield
        alter(reset)


def words(number: int) -> str:
    """Return what is said as number so and so, too much for the free space in the pages of a small SQLite file."""
    return f"This is what was said as number {number}: {' '.join(f'w{number}x{each}' for each in range(700))}."


# -- a session on such a day ----------------------------------------------------------------------------------------


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
        for _ in range(50):
            if (answer := await self.ready()) == (status, causes):
                return
        raise AssertionError(answer)


@asynccontextmanager
async def a_day(place: Place, folder: Path) -> AsyncIterator[tuple[Day, Database]]:
    """Open a room on the database at `place`, and the probes."""
    clock = FakeClock()
    async with open_database(place, synchronous="normal", busy_timeout_s=BUSY_S) as database:
        house = House(Sessions(database, clock), SqlTurnStore(database, clock), clock)
        checks = ServiceChecks(partial(check_writable, database), folder, clock=clock)
        health = Health(clock)
        async with living(house) as (room, task):
            health.add_fault_check(checks.faults)
            health.add_fault_check(room.faults)
            health.started()
            probes = HealthProbes(health, lambda: (b"", "text/plain"))
            async with WebServer(WebSettings(port=0), FakeHost(), probes=probes) as server:
                await server.start()
                async with aiohttp.ClientSession(f"http://127.0.0.1:{server.port}") as http:
                    yield Day(house, checks, http), database
            room.close("left")
            assert await ended(house, task) == "left"


@pytest.mark.asyncio
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
    """While the database is so, three turns are heard and the channel is told once, with the remedy. /readyz is red.
    It is green when the database is well again, without anybody saying anything. Every turn is stored once, in order.
    """
    async with a_day(place, tmp_path) as (day, database):
        await day.say(0)
        await day.until_ready(200, set())
        with bad(place, database):
            for number in (1, 2, 3):
                await day.say(number)
            await day.until_ready(503, {"database"})
            (told,) = day.house.place.written
            assert told.startswith("I cannot store what is said: ")
            assert said in told
        await day.until_ready(200, set())
        await day.say(4)
        assert len(day.house.place.written) == 1
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


@pytest.mark.asyncio
async def test_a_database_that_is_away_for_an_hour(place: Place, tmp_path: Path) -> None:
    """Another program holds the database for an hour in which people speak."""
    async with a_day(place, tmp_path) as (day, database):
        await day.say(0)
        with locked(place, database):
            for number in range(1, 4):
                await day.house.pass_time(HOUR_S / 3, step_s=60.0)
                await day.say(number)
            await day.until_ready(503, {"database"})
        await day.until_ready(200, set())
        assert len(day.house.place.written) == 1
    await assert_stored(place, 4)


class JumpingClock(FakeClock):
    """A clock whose wall time can be set."""

    jump_s = 0.0

    def now(self) -> float:
        """Return the wall clock."""
        return super().now() + self.jump_s


@pytest.mark.asyncio
async def test_a_clock_that_jumps_an_hour_and_back(place: Place) -> None:
    """Turns keep their numbers and their order, folds go on, and a restart finds all of them."""
    clock = JumpingClock()
    async with open_database(place) as database:
        store = SqlTurnStore(database, clock)
        opened = SessionMemory.open(
            EVENING,
            store=store,
            summariser=ExtractiveSummariser(),
            fallback=ExtractiveSummariser(),
            settings=CompactionSettings(),
            mode=Mode.SUMMARY,
            clock=clock,
            guild_id="77",
            rng=Random(7),
        )
        async with opened as memory:
            for number in range(90):
                clock.advance(4.0)
                clock.jump_s = {30: HOUR_S, 60: -HOUR_S}.get(number, clock.jump_s)
                now = clock.now()
                part = TurnPart("id-Ada", "Ada", f"Turn {number}")
                await memory.append(TurnKind.SPEECH, (part,), started_at=now, ended_at=now)
                memory.context(max_input_tokens=28_672)
                await memory.settle()
        stored = await store.turns(EVENING, Seq(0), Seq(999))
        assert [turn.parts[0].text for turn in stored] == [f"Turn {number}" for number in range(90)]
        after = await store.load(EVENING)
        assert after.total_turns == 90
        assert after.state.cursor > 0
        assert [each.start for each in after.segments] == sorted(each.start for each in after.segments)
