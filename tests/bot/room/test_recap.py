"""A session that ends is recapped in its channel, on servers that have chosen it."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, cast

import pytest

from bot.memory.digests import Digests
from bot.memory.readable_memory import ReadableMemory
from bot.memory.session_reader import SessionReader
from bot.room.recap import LEAST_SAID, post_recap
from bot.server_settings import ServerSettings
from bot.store.database import open_database
from bot.store.history import SessionHistory
from bot.store.sessions import Sessions
from bot.store.turns import SqlTurnStore
from compaction.errors import StoreError
from compaction.summary.extractive import ExtractiveSummariser
from tests.bot.room.test_room import House, ended, living
from tests.fakes.clock import FakeClock
from tests.fakes.place import ADA, BO

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from compaction.summary.port import Summariser


@asynccontextmanager
async def house_with_recaps(folder: Path) -> AsyncIterator[House]:
    """Open the services of rooms, with digests."""
    clock = FakeClock()
    async with open_database(folder / "room.db", synchronous="normal") as database:
        house = House(Sessions(database, clock), SqlTurnStore(database, clock), clock)

        async def summariser_of(_: int) -> Summariser:
            return ExtractiveSummariser()

        reader = SessionReader(house.sessions, house.store, withheld=house.participation.withheld_on)
        digests = Digests(reader, SessionHistory(database), summariser_of=summariser_of)
        house.readable = ReadableMemory(reader, digests, cast("Any", None))
        yield house


@pytest.mark.asyncio
@pytest.mark.parametrize(("chosen", "said", "posted"), [(True, 6, True), (False, 6, False), (True, 2, False)])
async def test_a_recap_is_posted_when_a_session_ends(tmp_path: Path, chosen: bool, said: int, posted: bool) -> None:
    """It is posted if the server has chosen it and enough was said; who opted out is not in it."""
    async with house_with_recaps(tmp_path) as house:
        await house.servers.change(house.place.guild_id, ServerSettings(posts_recap=chosen), by=1)
        async with living(house) as (room, task):
            await house.say(BO.id, "We decided that my aunt in Zanzibarq pays.")
            for number in range(said):
                await house.say(ADA.id, f"We decided to take train {number + 20} on Friday.")
            await house.participation.set_opt_out(house.place.guild_id, BO.id, out=True)
            room.close("left")
            assert await ended(house, task) == "left"
        assert len(house.place.recaps) == posted
        for digest in house.place.recaps:
            assert digest.people == ("Ada",)
            assert digest.turn_count == LEAST_SAID == said
            assert "Zanzibarq" not in str(digest)
            assert "on Friday" in str(digest.decisions)


@pytest.mark.asyncio
async def test_a_store_that_fails_posts_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The session has ended already, so a failure is only logged. A room that told nobody posts nothing either."""

    async def fail(*_: object, **__: object) -> None:
        raise StoreError("The disk is full.")

    async with house_with_recaps(tmp_path) as house:
        await house.servers.change(house.place.guild_id, ServerSettings(posts_recap=True), by=1)
        async with living(house) as (room, task):
            for number in range(LEAST_SAID):
                await house.say(ADA.id, f"We decided to take train {number + 20} on Friday.")
            room.close("not_announced")
            await ended(house, task)
        assert house.place.recaps == []
        monkeypatch.setattr(Sessions, "find", fail)
        await post_recap(cast("Any", "evening"), house.place, house.services(), reason="left")
        assert house.place.recaps == []
