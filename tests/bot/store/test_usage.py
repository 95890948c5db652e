"""What servers use is added up by their ids and times, and goes when it is too old."""

from __future__ import annotations

from bot.cost import Cost
from bot.store.database import Database
from bot.store.servers import KEPT_S, SLOT_S, UsageStore

NOW = 1_760_000_000.0


async def test_use_is_added_up(database: Database) -> None:
    """Within a slot, over slots, and for each server."""
    usage = UsageStore(database)
    await usage.add({5: Cost(1, 100, 2.5), 6: Cost(2, 7, 0.0)}, now=NOW)
    await usage.add({5: Cost(1, 50, 0.5)}, now=NOW + 1.0)
    await usage.add({5: Cost(0, 0, 9.0)}, now=NOW + SLOT_S)
    slots = await usage.slots_of(5, since=NOW - 1.0)
    assert [cost for _, cost in slots] == [Cost(2, 150, 3.0), Cost(0, 0, 9.0)]
    assert all(NOW < end <= NOW + 2 * SLOT_S for end, _ in slots)
    assert await usage.by_server(since=0.0) == {5: Cost(2, 150, 12.0), 6: Cost(2, 7, 0.0)}
    assert await usage.by_server(since=NOW + SLOT_S) == {5: Cost(0, 0, 9.0)}
    assert await usage.by_server(since=NOW + 3 * SLOT_S) == {}


async def test_old_use_goes(database: Database) -> None:
    """A month's figures need no more."""
    usage = UsageStore(database)
    await usage.add({5: Cost(1)}, now=NOW)
    await usage.add({6: Cost(1)}, now=NOW + KEPT_S + 2 * SLOT_S)
    assert set(await usage.by_server(since=0.0)) == {6}
