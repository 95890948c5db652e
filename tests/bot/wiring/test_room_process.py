"""Who may claim a server's room, when processes are given up before they have claimed it."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import pytest
import pytest_asyncio
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from bot.store.claims import RoomClaim, claim_room, newest_claim
from bot.store.database import open_database
from bot.store.sessions import Sessions
from bot.wiring.room_process import claiming
from compaction.errors import StaleOwnerError
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


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
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
