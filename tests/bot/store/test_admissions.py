"""What the operator decides about servers is stored, and the last decision holds."""

from __future__ import annotations

from bot.store.database import Database
from bot.store.servers import AdmissionStore


async def test_the_last_decision_holds(database: Database) -> None:
    """Of each server."""
    store = AdmissionStore(database)
    for guild_id, served in ((5, False), (6, True), (5, True)):
        await store.put(guild_id, served=served)
    assert await store.all() == {5: True, 6: True}
