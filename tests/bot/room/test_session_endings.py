"""What rooms have left open is ended once the database answers, without hurry, or the log says that it stays open."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest
from structlog.testing import capture_logs

from bot.room import session_endings
from bot.room.restarts import DATABASE_PAUSE_S
from bot.room.session_endings import SessionEndings
from compaction.errors import StoreError
from tests.fakes.brain import until
from tests.fakes.clock import FakeClock
from tests.fakes.place import FakePlace

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from bot.channel.port import Place

LOUNGE, OTHER = FakePlace(), FakePlace(guild_id=11)


class Database:
    """A database that may be away, or not answer. `tried`: the servers of all attempts; `ended`: of those that were
    stored.
    """

    def __init__(self) -> None:
        self.is_away = True
        self.hangs = False
        self.tried: list[int] = []
        self.ended: list[int] = []

    async def end_session(self, place: Place) -> None:
        """End what is open on the place's server."""
        self.tried.append(place.guild_id)
        if self.hangs:
            await asyncio.Event().wait()
        if self.is_away:
            raise StoreError("The database is away.")
        self.ended.append(place.guild_id)


class Scene:
    """The endings, their database and their clock."""

    def __init__(self) -> None:
        self.database, self.clock = Database(), FakeClock()
        self.endings = SessionEndings(self.database.end_session, self.clock)

    async def pass_pause(self) -> None:
        """Let the pause between two tries pass, and all be tried that waits."""
        await self.clock.until_somebody_sleeps()
        self.clock.advance(DATABASE_PAUSE_S)
        for _ in range(10):
            await asyncio.sleep(0)


@asynccontextmanager
async def a_scene() -> AsyncIterator[Scene]:
    scene = Scene()
    try:
        yield scene
    finally:
        await scene.endings.close()


@pytest.mark.asyncio
async def test_a_session_is_ended_as_soon_as_the_database_answers() -> None:
    """It is tried at intervals, however long that takes, and no more afterwards. The log says once that it waits."""
    async with a_scene() as scene:
        with capture_logs() as logs:
            await scene.endings.end(LOUNGE)
            for number in range(2, 100):
                await scene.pass_pause()
                assert len(scene.database.tried) == number
            scene.database.is_away = False
            await scene.pass_pause()
        assert scene.database.ended == [LOUNGE.guild_id]
        assert scene.clock.sleeping == 0
        assert [line["event"] for line in logs] == ["session_end_waits"]


@pytest.mark.asyncio
async def test_a_session_that_the_database_takes_at_once_leaves_nothing_behind() -> None:
    """No task, and no line in the log."""
    async with a_scene() as scene:
        scene.database.is_away = False
        with capture_logs() as logs:
            await scene.endings.end(LOUNGE)
        assert (scene.database.ended, scene.clock.sleeping, logs) == ([LOUNGE.guild_id], 0, [])


@pytest.mark.asyncio
async def test_the_sessions_of_all_servers_share_one_task() -> None:
    """An outage while a thousand rooms end makes no thousand of them."""
    async with a_scene() as scene:
        for place in (LOUNGE, OTHER):
            await scene.endings.end(place)
        await until(lambda: scene.clock.sleeping > 0)
        assert scene.clock.sleeping == 1
        scene.database.is_away = False
        await scene.pass_pause()
        assert scene.database.ended == [LOUNGE.guild_id, OTHER.guild_id]


@pytest.mark.asyncio
async def test_a_database_that_does_not_answer_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """The room that has ended is over within seconds, and the ending is tried again."""
    monkeypatch.setattr(session_endings, "END_SESSION_S", 0.0)
    async with a_scene() as scene:
        scene.database.hangs = True
        await scene.endings.end(LOUNGE)
        scene.database.hangs = scene.database.is_away = False
        await scene.pass_pause()
        assert scene.database.ended == [LOUNGE.guild_id]


@pytest.mark.asyncio
async def test_nothing_is_ended_on_a_server_where_a_room_has_begun() -> None:
    """Its session is open too."""
    async with a_scene() as scene:
        await scene.endings.end(LOUNGE)
        await scene.clock.until_somebody_sleeps()
        assert scene.endings.take_over(LOUNGE.guild_id)
        assert not scene.endings.take_over(LOUNGE.guild_id)
        scene.database.is_away = False
        await scene.pass_pause()
        await scene.endings.try_now(LOUNGE.guild_id)
        assert scene.database.ended == []


@pytest.mark.asyncio
async def test_what_waits_is_tried_a_last_time_when_the_process_ends() -> None:
    """The database may have come back since the last try."""
    async with a_scene() as scene:
        await scene.endings.end(LOUNGE)
        scene.database.is_away = False
        with capture_logs() as logs:
            await scene.endings.close()
        assert (scene.database.ended, scene.clock.sleeping, logs) == ([LOUNGE.guild_id], 0, [])


@pytest.mark.parametrize("hangs", [True, False])
@pytest.mark.asyncio
async def test_the_log_says_what_stays_open_when_the_process_ends(
    monkeypatch: pytest.MonkeyPatch, *, hangs: bool
) -> None:
    """Nothing ends it any more, so the bot comes back there; a database that does not answer delays that no further."""
    monkeypatch.setattr(session_endings, "LAST_TRY_S", 0.0)
    async with a_scene() as scene:
        await scene.endings.end(LOUNGE)
        scene.database.hangs = hangs
        with capture_logs() as logs:
            await scene.endings.close()
            # A room that was cut off is over only now.
            scene.database.hangs = False
            await scene.endings.end(OTHER)
        told = [(line["event"], line["guild_id"]) for line in logs]
        assert told == [("session_left_open", LOUNGE.guild_id), ("session_left_open", OTHER.guild_id)]
        assert scene.clock.sleeping == 0
