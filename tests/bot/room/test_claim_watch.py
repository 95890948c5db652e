"""Two processes run the room of one server: the older one ends itself and adds nothing."""

from __future__ import annotations

from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, cast

from structlog.testing import capture_logs

from bot import events
from bot.room import other_processes
from bot.room.other_processes import CHECK_CLAIM_S, ClaimWatch
from bot.store.claims import STALE, RoomClaim, fenced
from bot.store.database import open_database
from bot.store.sessions import Sessions
from bot.store.turns import SqlTurnStore
from compaction.errors import StaleOwnerError, StoreError
from tests.bot.room.room_scene import House, living, settle
from tests.fakes.clock import FakeClock
from tests.fakes.hearing import speech
from tests.fakes.place import ADA, BO

if TYPE_CHECKING:
    import asyncio
    from collections.abc import AsyncIterator
    from pathlib import Path

    import pytest


@asynccontextmanager
async def two_houses(folder: Path) -> AsyncIterator[tuple[House, House]]:
    """Open one database as two processes do, each with rooms of its own."""
    async with AsyncExitStack() as stack:
        houses = []
        for _ in range(2):
            clock = FakeClock()
            database = await stack.enter_async_context(open_database(folder / "room.db", synchronous="normal"))
            house = House(Sessions(database, clock), SqlTurnStore(database, clock), clock)
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


async def test_a_room_that_was_taken_over_neither_stores_nor_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The older room hears a question, may not store it, and ends without an answer. The newer one has every turn that
    was stored before, and goes on.
    """
    # It finds out by what it hears, and not by a check before.
    monkeypatch.setattr(other_processes, "CHECK_CLAIM_S", 600.0)
    async with two_houses(tmp_path) as (old, new), living(old) as (_, first):
        await old.say(ADA.id, "The spare key is under the blue flower pot.")
        await old.pass_time(2.0)
        async with living(new):
            await new.say(BO.id, "The red key opens the shed.")
            old.recogniser.texts.append("Roomtone, where is the spare key?")
            with capture_logs() as logs:
                old.place.links[-1].hear(speech(BO.id, at=old.clock.monotonic() - 2.0))
                await old.pass_time(1.5)
                await settle(first.done)
            assert isinstance(reason(first), StaleOwnerError)
            assert not old.of(events.ReplySpoken)
            assert old.voice.spoken == []
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
        assert old.place.shown_as_listening


async def test_only_the_owner_changes_the_voice_state(tmp_path: Path) -> None:
    """After a takeover, a room may neither join again nor leave: Discord would move the new room's connection."""
    async with two_houses(tmp_path) as (old, new), living(old):
        assert old.place.is_owner is not None
        assert await old.place.is_owner()
        async with living(new):
            assert new.place.is_owner is not None
            assert (await old.place.is_owner(), await new.place.is_owner()) == (False, True)


class AwayDatabase:
    """Stands for `Sessions` whose database cannot be reached."""

    async def check(self, claim: RoomClaim) -> None:
        """Fail as the store does."""
        raise StoreError("The database does not answer.")


async def test_a_database_that_is_away_ends_no_room() -> None:
    """Nobody is taken for another owner because the database fails."""
    watch = ClaimWatch(cast("Sessions", AwayDatabase()), RoomClaim(10, 1), FakeClock())
    await watch.check()
    assert await watch.is_owner()
