"""Reads the numbers in `search_marks`, which all processes of one database share, by their names."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from sqlalchemy import select

from bot.store.tables import search_marks

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sqlalchemy.ext.asyncio import AsyncConnection


async def read_marks(connection: AsyncConnection) -> Mapping[str, int]:
    """Return all marks, in one query: there are few, and the indexer asks for several with each step. One that is not
    stored is 0.
    """
    stored = await connection.execute(select(search_marks.c.name, search_marks.c.value))
    return defaultdict(int, {row.name: row.value for row in stored})
