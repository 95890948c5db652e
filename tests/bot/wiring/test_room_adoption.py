"""For which rooms a bot that was started again waits."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from bot.settings import RESUME_WITHIN_S
from bot.shards import ONLY_SHARD
from bot.store.database import open_database
from bot.store.sessions import Sessions
from bot.wiring.room_adoption import take_rooms_back
from tests.fakes.clock import FakeClock

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path


@pytest.mark.asyncio
async def test_a_room_in_which_nobody_has_spoken_for_hours_is_waited_for(tmp_path: Path) -> None:
    """Its session is open, so it may run; one that has ended does not."""
    awaited: list[set[int]] = []

    async def finish(expected: Collection[int]) -> None:
        awaited.append(set(expected))

    adoptions = SimpleNamespace(begin=lambda *_: None, finish=finish)
    clock, absent = FakeClock(), cast("Any", None)
    async with open_database(tmp_path / "rooms.db") as database:
        sessions = Sessions(database, clock)
        for guild_id in (10, 11):
            await sessions.open(guild_id=guild_id, channel_id=guild_id + 10, resume_within_s=RESUME_WITHIN_S)
        await sessions.end_open(11)
        clock.advance(4 * RESUME_WITHIN_S)
        remote = cast("Any", SimpleNamespace(adoptions=adoptions))
        await take_rooms_back(remote, absent, absent, sessions, database, ONLY_SHARD)
    assert awaited == [{10}]
