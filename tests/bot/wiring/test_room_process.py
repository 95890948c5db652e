"""How a room's process opens the database, and who may claim a server's room when processes are given up first."""

from __future__ import annotations

import asyncio
import itertools
import sqlite3
from contextlib import AsyncExitStack, closing
from typing import TYPE_CHECKING

import pytest
import pytest_asyncio
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from pydantic import SecretStr
from structlog.testing import capture_logs

from bot.store.claims import RoomClaim, claim_room, newest_claim
from bot.store.database import open_database
from bot.store.migrations.upgrade import HEAD
from bot.store.sessions import Sessions
from bot.wiring.room_process import DATABASE_PAUSE_S, DATABASE_WITHIN_S, claiming, open_stores_as_they_are
from bot.wiring.settings import BotSettings
from compaction.errors import StaleOwnerError, StoreError
from config.schema import Settings
from tests.bot.remote.peers import until
from tests.fakes.clock import FakeClock

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from bot.store.database import Database

CHANNEL = 20
# Each example has a server of its own.
_guilds = itertools.count(1)
# Whether the database answers the gateway process at that moment.
_answers = st.booleans()
STEPS = st.one_of(
    st.tuples(st.just("start"), _answers),
    st.tuples(st.just("lose"), _answers),
    st.tuples(st.just("claim"), st.integers(0, 2)),
)


@pytest_asyncio.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    """The database of all processes."""
    async with open_database(tmp_path / "a.db", synchronous="normal") as opened:
        yield opened


def settings_of(folder: Path) -> BotSettings:
    """Return settings with the database in a folder."""
    whole = Settings.model_validate({"storage": {"data_dir": folder}})
    return BotSettings.from_schema(whole)


async def older(path: Path) -> None:
    """Make a database that an older Roomtone uses."""
    async with open_database(path):
        pass
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE alembic_version SET version_num = '0016'")


@pytest.mark.asyncio
async def test_a_room_s_process_waits_until_the_bot_has_migrated(tmp_path: Path) -> None:
    """It says once why it waits, and leaves the database alone."""
    place = settings_of(tmp_path).storage.database
    assert not isinstance(place, SecretStr)
    await older(place)
    before, clock = place.read_bytes(), FakeClock()
    async with AsyncExitStack() as stack:
        with capture_logs() as logs:
            opening = asyncio.create_task(open_stores_as_they_are(stack, settings_of(tmp_path), clock, asyncio.Event()))
            for _ in range(3):
                await until(lambda: clock.sleeping)
                clock.advance(DATABASE_PAUSE_S)
                await until(lambda: not clock.sleeping)
            await until(lambda: clock.sleeping)
        assert place.read_bytes() == before
        assert [line["event"] for line in logs] == ["room_process_waits_for_database"]
        with closing(sqlite3.connect(place)) as connection, connection:
            connection.execute("UPDATE alembic_version SET version_num = ?", [HEAD])
        clock.advance(DATABASE_PAUSE_S)
        stores = await opening
        assert stores is not None
        assert await newest_claim(stores.database, 1) == 0


@pytest.mark.asyncio
async def test_a_room_s_process_does_not_wait_for_ever(tmp_path: Path) -> None:
    """It ends with the sentence, or when it is told to."""
    place = settings_of(tmp_path).storage.database
    assert not isinstance(place, SecretStr)
    await older(place)
    stop, clock = asyncio.Event(), FakeClock()
    async with AsyncExitStack() as stack:
        opening = asyncio.create_task(open_stores_as_they_are(stack, settings_of(tmp_path), clock, stop))
        await until(lambda: clock.sleeping)
        clock.advance(DATABASE_WITHIN_S)
        with pytest.raises(StoreError, match="Only the bot itself"):
            await opening
        opening = asyncio.create_task(open_stores_as_they_are(stack, settings_of(tmp_path), clock, stop))
        await until(lambda: clock.sleeping)
        stop.set()
        clock.advance(DATABASE_PAUSE_S)
        assert await opening is None


class Process:
    """A process that has accepted the room."""

    def __init__(self, sessions: Sessions) -> None:
        self.sessions = sessions
        self.claim: RoomClaim | None = None


class Server:
    """A server's room. `runs`: the process that has it, for all that the gateway process knows."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.guild_id = next(_guilds)
        self.waiting: list[Process] = []
        self.runs: Process | None = None

    async def start(self, *, answers: bool) -> None:
        """Let a process accept the room, if none has it."""
        if self.runs is not None:
            return
        after = await newest_claim(self.database, self.guild_id) if answers else None
        sessions = Sessions(self.database, FakeClock())
        self.runs = Process(await claiming(sessions, self.database, self.guild_id, after))
        self.waiting.append(self.runs)

    async def lose(self, *, answers: bool) -> None:
        """Give the process up. It may go on, and does not know."""
        if self.runs is not None and answers:
            async with self.database.writing() as connection:
                await claim_room(connection, self.guild_id)
        self.runs = None

    async def claim(self, number: int) -> None:
        """Let a process that has accepted the room claim it, whether or not it was given up since."""
        if not self.waiting:
            return
        process = self.waiting.pop(number % len(self.waiting))
        try:
            opened = await process.sessions.open(guild_id=self.guild_id, channel_id=CHANNEL, resume_within_s=1800)
            process.claim = opened.claim
        except StaleOwnerError:
            if process is self.runs:
                # It never had the room, and is started again.
                self.runs = None

    async def check(self) -> None:
        """Fail if the room that runs may not write."""
        if self.runs is not None and self.runs.claim is not None:
            await Sessions(self.database, FakeClock()).check(self.runs.claim)


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(steps=st.lists(STEPS, max_size=20))
@example(steps=[("start", False), ("lose", True), ("start", True), ("claim", 1)])
@pytest.mark.asyncio
async def test_no_process_that_was_given_up_takes_the_room_from_the_one_that_runs(
    database: Database, steps: list[tuple[str, int]]
) -> None:
    """Processes accept the room, are lost, and claim it late, in any order and with a database that is away at times.
    The room that has begun stays the owner, and one that could not begin can always be started again.
    """
    server = Server(database)
    for step, value in steps:
        match step:
            case "start":
                await server.start(answers=bool(value))
            case "lose":
                await server.lose(answers=bool(value))
            case _:
                await server.claim(value)
        await server.check()
    while server.waiting:
        await server.claim(0)
        await server.check()
    await server.start(answers=True)
    await server.claim(0)
    assert server.runs is not None
    assert server.runs.claim is not None
    await server.check()
