"""A house whose rooms' sessions can be read: for recaps, transcripts and webhooks."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

from bot.memory.digests import Digests
from bot.memory.personal_recall import MemoryReaders
from bot.memory.session_views import SessionViews
from bot.store.history import SessionHistory
from compaction.summary.extractive import ExtractiveSummariser
from compaction.summary.port import Summariser
from tests.bot.room.room_scene import House, a_house


@asynccontextmanager
async def readable_house(folder: Path) -> AsyncIterator[House]:
    """Open the services of rooms, with digests."""
    async with a_house(folder) as house:

        async def summariser_of(_: int) -> Summariser:
            return ExtractiveSummariser()

        views = SessionViews(house.sessions, house.store, withheld=house.participation.withheld_on)
        digests = Digests(views, SessionHistory(house.database), summariser_of=summariser_of)
        house.readable = MemoryReaders(views, digests, cast("Any", None))
        yield house
