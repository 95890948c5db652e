"""Two processes run the room of one server: the older one ends itself and adds nothing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import cast
from unittest.mock import AsyncMock

import pytest
from structlog.typing import EventDict

from bot import events
from bot.logs.log_file import log_path
from bot.memory.personal_data import PersonForgetter
from bot.room.watches import CHECK_CLAIM_S, CHECK_FORGETTINGS_S, ClaimWatch, ForgettingWatch
from bot.store.claims import STALE, RoomClaim, fenced
from bot.store.database import Database, open_database
from bot.store.forgettings import record_forgetting
from bot.store.sessions import Sessions
from bot.store.turns import SqlTurnStore
from bot.words import Words
from compaction.errors import StaleOwnerError, StoreError
from compaction.model import SessionId
from compaction.session import SessionTimeline
from tests.bot.empty_database import put_empty_database
from tests.bot.room.room_scene import House, living
from tests.fakes.clock import FakeClock
from tests.fakes.hearing import speech
from tests.fakes.room_channel import ADA, BO, FakeRoomChannel
from tests.patience import settle


@asynccontextmanager
async def two_houses(folder: Path) -> AsyncIterator[tuple[House, House]]:
    """Open one database as two processes do, each with rooms of its own."""
    async with AsyncExitStack() as stack:
        houses = []
        for _ in range(2):
            clock = FakeClock()
            put_empty_database(folder / "room.db")
            database = await stack.enter_async_context(open_database(folder / "room.db", synchronous="normal"))
            house = House(database, clock)
            house.store_of = lambda claim, mine=database, now=clock: SqlTurnStore(fenced(mine, claim), now)  # type: ignore[misc]
            houses.append(house)
        yield houses[0], houses[1]


def reason(task: asyncio.Task[str]) -> BaseException:
    """Return why a room broke off."""
    error = task.exception()
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    assert error is not None
    return error


async def test_a_room_that_was_taken_over_neither_stores_nor_answers(tmp_path: Path, logs: list[EventDict]) -> None:
    """The older room hears a question, may not store it, and ends without an answer. The newer one has every turn that
    was stored before, and goes on.
    """
    async with two_houses(tmp_path) as (old, new), living(old) as (_, first):
        await old.say(ADA.id, "The spare key is under the blue flower pot.")
        await old.pass_time(2.0)
        async with living(new):
            await new.say(BO.id, "The red key opens the shed.")
            old.recogniser.texts.append("Roomtone, where is the spare key?")
            # It finds out by what it hears, and not by a check: the next is not due.
            old.channel.connections[-1].hear(speech(BO.id, at=old.clock.monotonic() - 2.0))
            await old.pass_time(1.5)
            await settle(first.done)
            assert isinstance(reason(first), StaleOwnerError)
            assert not old.of(events.ReplySpoken)
            assert [each["count"] for each in logs if each["event"] == "turns_not_stored"] == [1]
            await new.say(ADA.id, "Roomtone, where is the spare key?")
            assert "blue flower pot" in (await new.reply(1)).text
            (session,) = await new.sessions.recent()
            assert (session.turn_count, session.ended_at) == (4, None)


async def test_a_quiet_room_finds_out_too(tmp_path: Path) -> None:
    """Where nobody says anything, the room asks at intervals whether it still has the server's room."""
    async with two_houses(tmp_path) as (old, new), living(old) as (_, first), living(new) as (_, second):
        await old.pass_time(CHECK_CLAIM_S + 1)
        await settle(first.done)
        assert str(reason(first)) == STALE
        await new.pass_time(CHECK_CLAIM_S + 1)
        assert not second.done()
        # The bot has one mark on a server, and the new room hears people there.
        assert old.channel.shown_as_listening


async def test_only_the_owner_changes_the_voice_state(tmp_path: Path) -> None:
    """After a takeover, a room may neither join again nor leave: Discord would move the new room's connection."""
    async with two_houses(tmp_path) as (old, new), living(old):
        assert old.channel.is_owner is not None
        assert await old.channel.is_owner()
        async with living(new):
            assert new.channel.is_owner is not None
            assert (await old.channel.is_owner(), await new.channel.is_owner()) == (False, True)


class AwayDatabase:
    """Stands for `Sessions` whose database cannot be reached."""

    async def check(self, claim: RoomClaim) -> None:
        raise StoreError("The database does not answer.")


async def test_a_database_that_is_away_ends_no_room() -> None:
    """Nobody is taken for another owner because the database fails."""
    watch = ClaimWatch(cast("Sessions", AwayDatabase()), RoomClaim(10, 1), FakeClock())
    await watch.check()
    assert await watch.is_owner()


EVENING = SessionId("evening")


class Scene:
    """A room with Ada (1) and Bo (2), and its watch on a database."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.clock = FakeClock()
        self.words = Words(monotonic=self.clock.monotonic)
        self.sessions = Sessions(database, self.clock)
        # It stands for the timeline too.
        self.session_id, self.refresh, self.turns = EVENING, AsyncMock(), ()
        self.channel = FakeRoomChannel()

    async def begin(self) -> None:
        opened = await self.sessions.open(guild_id=10, channel_id=20, resume_within_s=0.0, session_id=EVENING)
        self.watch = ForgettingWatch(
            self.sessions,
            cast("SessionTimeline", self),
            self.words,
            self.channel,
            seen=opened.forgettings,
            clock=self.clock,
        )

    async def forget(self, person_id: str, *, session_id: str | None = None, seq: int | None = None) -> None:
        """Note that a person is forgotten, as another process does."""
        where = None if session_id is None else SessionId(session_id)
        async with self.database.writing() as connection:
            await record_forgetting(connection, self.database.key, person_id, session_id=where, seq=seq)

    async def check(self) -> tuple[list[int], int]:
        """Let time pass and look; return whose words were taken back at that, and how often any were so far."""
        self.clock.advance(CHECK_FORGETTINGS_S)
        await self.watch.check()
        now = self.clock.monotonic()
        return [each for each in (1, 2, 3) if self.words.taken_back_at(each) == now], self.words.epoch


async def test_who_is_forgotten_elsewhere_is_forgotten_here(tmp_path: Path) -> None:
    """Once for each time, and not for what was before the room. Who was never there, and other sessions, do not
    count; of one turn only what was made of it is dropped.
    """
    async with open_database(tmp_path / "a.db") as database:
        scene = Scene(database)
        await scene.forget("1")
        await scene.begin()
        assert await scene.check() == ([], 0)
        await scene.forget("2")
        await scene.forget("3")
        assert await scene.check() == ([2], 1)
        assert await scene.check() == ([], 1)
        await scene.forget("1", session_id="another")
        assert await scene.check() == ([], 1)
        await scene.forget("1", session_id=EVENING, seq=0)
        assert await scene.check() == ([], 2)
        # Whoever was there counts also after they have left and their turns are gone.
        scene.channel.people = []
        await scene.forget("1", session_id=EVENING)
        assert await scene.check() == ([1], 3)
        # First one turn, then everything, between two looks.
        await scene.forget("2", session_id=EVENING, seq=0)
        await scene.forget("2", session_id=EVENING)
        assert await scene.check() == ([2], 4)


async def test_who_is_forgotten_while_the_store_is_away_is_forgotten_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if the store was away at the room's first look."""
    async with open_database(tmp_path / "a.db") as database:
        scene = Scene(database)
        await scene.begin()
        await scene.forget("1")
        with monkeypatch.context() as away:
            away.setattr(scene.sessions, "forgettings_after", AsyncMock(side_effect=StoreError("Away.")))
            assert await scene.check() == ([], 0)
        assert await scene.check() == ([1], 1)
        # The store knows from now on until when the person has spoken.
        scene.refresh.assert_awaited_once_with()
        # Whom it does not know may be in its summary.
        await scene.forget("3")
        assert await scene.check() == ([], 1)
        assert scene.refresh.await_count == 2


async def test_a_room_that_knows_already_is_not_told_again(tmp_path: Path) -> None:
    """/forget-me in the room's own process has told it: what the person says since is kept, and no reply is stopped."""
    async with open_database(tmp_path / "a.db") as database:
        scene = Scene(database)
        await scene.begin()
        await scene.check()
        scene.words.take_back({"1"}, turns=True)
        await scene.forget("1")
        assert await scene.check() == ([], 1)
        await scene.forget("1")
        assert await scene.check() == ([1], 2)


async def test_an_open_room_finds_out(house: House, tmp_path: Path, logs: list[EventDict]) -> None:
    """`roomtone memory forget` on the same database reaches a room in which nobody says anything any more."""
    async with living(house), open_database(tmp_path / "room.db") as other:
        await house.say(ADA.id, "The spare key is under the blue flower pot.")
        guild = await house.participation.of_guild(house.channel.guild_id)
        forgetter = PersonForgetter(other, house.clock, log_folder=log_path(tmp_path).parent)
        (ada,) = await forgetter.speech.find(str(ADA.id))
        await forgetter.forget(ada)
        await house.pass_time(CHECK_FORGETTINGS_S + 1)
        await settle(lambda: guild.words.taken_back_at(ADA.id) > 0)
        (told,) = (each for each in logs if each["event"] == "forgotten_elsewhere")
        # Without their id, which would bring it back into the log.
        assert told == {"event": "forgotten_elsewhere", "count": 1, "log_level": "info"}
