"""A session that ends is recapped in its channel, on servers that have chosen it."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, cast

import pytest

from bot.memory.digests import Digests
from bot.memory.personal_recall import ReadableMemory
from bot.memory.session_reader import SessionReader
from bot.room.posted_messages import LEAST_SAID, RecapRenewal
from bot.server_settings import ServerSettings
from bot.store.database import open_database
from bot.store.history import SessionHistory
from bot.store.sessions import Sessions
from bot.store.speech_forgetting import SpeechForgetter
from bot.store.turns import SqlTurnStore
from compaction.summary.extractive import ExtractiveSummariser
from tests.bot.room.room_scene import House, ended, living
from tests.fakes.clock import FakeClock
from tests.fakes.place import ADA, BO

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from bot.channel.port import RoomChannel
    from compaction.memory.digest import Digest
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


@pytest.mark.parametrize(("chosen", "said", "posted"), [(True, 6, True), (False, 6, False), (True, 2, False)])
async def test_a_recap_is_posted_when_a_session_ends(tmp_path: Path, chosen: bool, said: int, posted: bool) -> None:
    """It is posted if the server has chosen it and enough was said; who opted out is not in it."""
    async with house_with_recaps(tmp_path) as house:
        await house.servers.change(house.place.guild_id, lambda _: ServerSettings(posts_recap=chosen), by=1)
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
            assert "on Friday" in str(digest.last)


async def test_a_posted_recap_loses_what_is_forgotten(tmp_path: Path) -> None:
    """After somebody is forgotten, also by another process, the message is made anew; with too little left it goes."""
    async with house_with_recaps(tmp_path) as house:
        await house.servers.change(house.place.guild_id, lambda _: ServerSettings(posts_recap=True), by=1)
        async with living(house) as (room, task):
            for number in range(LEAST_SAID):
                await house.say(ADA.id, f"We decided to take train {number + 20} on Friday.")
            await house.say(BO.id, "We decided that my aunt in Zanzibarq pays.")
            room.close("left")
            await ended(house, task)
        (posted,) = house.place.recaps
        assert "Zanzibarq" in str(posted)
        assert house.readable is not None
        renewal = RecapRenewal(house.sessions, house.readable.digests)

        def place_of(guild_id: int, channel_id: int) -> RoomChannel | None:
            return house.place if (guild_id, channel_id) == (house.place.guild_id, house.place.channel_id) else None

        await renewal.run_once(place_of)
        assert house.place.renewed == []
        forgetter = SpeechForgetter(house.sessions._database, house.clock)
        for person in (BO, ADA):
            stored = await forgetter.find_by_id(str(person.id))
            assert stored is not None
            await forgetter.forget(stored)
            house.place.writable = False
            await renewal.run_once(place_of)
            await renewal.run_once(lambda *_: None)
            house.place.writable = True
            await renewal.run_once(place_of)
            await renewal.run_once(place_of)
        (first, left), (second, nothing) = house.place.renewed
        assert (first, second, nothing) == (1, 1, None)
        assert left is not None
        assert "Zanzibarq" not in str(left)
        assert left.people == ("Ada",)
        assert await house.sessions.stale_recaps() == ()


async def test_what_is_forgotten_while_a_recap_is_posted_makes_it_stale(tmp_path: Path) -> None:
    """Between reading and posting somebody may be forgotten; a recap that cannot be remembered is deleted again."""
    async with house_with_recaps(tmp_path) as house:
        await house.servers.change(house.place.guild_id, lambda _: ServerSettings(posts_recap=True), by=1)
        write = house.place.write_recap

        async def slowly(digest: Digest) -> int | None:
            forgetter = SpeechForgetter(house.sessions._database, house.clock)
            stored = await forgetter.find_by_id(str(BO.id))
            assert stored is not None
            await forgetter.forget(stored)
            return await write(digest)

        house.place.write_recap = slowly  # type: ignore[method-assign]
        async with living(house) as (room, task):
            for number in range(LEAST_SAID):
                await house.say(ADA.id, f"We decided to take train {number + 20} on Friday.")
            await house.say(BO.id, "We decided that my aunt in Zanzibarq pays.")
            room.close("left")
            await ended(house, task)
        assert [each.message_id for each in await house.sessions.stale_recaps()] == [1]
