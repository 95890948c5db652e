"""Who may be quoted in a session without having spoken there."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest_asyncio

from bot.store.database import Database, open_database
from bot.store.history import SessionHistory
from bot.store.servers import OptOutStore
from bot.store.sessions import Sessions
from bot.store.turns import SqlTurnStore
from compaction.model import Seq, SessionId, Turn, TurnKind, TurnPart
from tests.bot.conftest import Place
from tests.fakes.clock import FakeClock

GUILD, CHANNEL = 1, 2
ADA, BO, CY, DI = "11", "12", "13", "14"
EVERYBODY = frozenset({ADA, BO, CY, DI})


class _Server:
    """A server whose sessions follow one another, each an hour later."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.clock = FakeClock()
        self.sessions = Sessions(database, self.clock)
        self.store = SqlTurnStore(database, self.clock)
        self.opt_outs = OptOutStore(database, self.clock)
        self.history = SessionHistory(database)

    async def session(self, name: str, *speakers: str, guild: int = GUILD) -> SessionId:
        """Store a session in which these people speak."""
        self.clock.advance(3_600.0)
        session_id = SessionId(name)
        await self.sessions.open(guild_id=guild, channel_id=CHANNEL, resume_within_s=60.0, session_id=session_id)
        for seq, who in enumerate(speakers):
            at = self.clock.now() + seq
            part = TurnPart(who, f"name {who}", "The gate code is 4411.")
            await self.store.append_turn(session_id, Turn(Seq(seq), TurnKind.SPEECH, at, at + 1, (part,)))
        return session_id


@pytest_asyncio.fixture
async def server(place: Place) -> AsyncIterator[_Server]:
    """A server without sessions."""
    async with open_database(place) as database:
        yield _Server(database)


async def test_who_spoke_before_on_the_server_may_be_quoted(server: _Server) -> None:
    """Neither those of another server, nor those who spoke only later, nor those who never spoke."""
    await server.session("elsewhere", CY, guild=GUILD + 1)
    first = await server.session("first", ADA)
    second = await server.session("second", BO)
    await server.session("third", DI)
    assert await server.sessions.quotable(first, EVERYBODY) == frozenset()
    assert await server.sessions.quotable(second, EVERYBODY) == {ADA}
    assert await server.sessions.quotable(second, frozenset()) == frozenset()
    assert await server.history.quotable(second, EVERYBODY) == {ADA, BO}
    assert await server.sessions.quotable(SessionId("unknown"), EVERYBODY) == frozenset()
    assert (await server.store.load(second)).quotable == {ADA, DI}


async def test_who_had_opted_out_before_a_session_is_not_quoted_in_it(server: _Server) -> None:
    """Nothing of theirs was found by then. What the bot said until they opted out may have their words."""
    await server.session("first", ADA, BO)
    before = await server.session("before", CY)
    server.clock.advance(60.0)
    await server.opt_outs.put(GUILD, int(ADA), out=True)
    after = await server.session("after", CY)
    await server.opt_outs.put(GUILD + 1, int(BO), out=True)
    assert await server.sessions.quotable(before, EVERYBODY) == {ADA, BO}
    assert await server.sessions.quotable(after, EVERYBODY) == {BO, CY}
    assert await server.sessions.quotable(after, frozenset({ADA})) == frozenset()
    assert (await server.store.load(after)).quotable == {BO, CY}
    new = await server.session("new")
    assert (await server.store.load(new)).quotable == {ADA, BO, CY}, "she may opt in again, and be quoted"
