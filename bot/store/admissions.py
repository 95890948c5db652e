"""Stores which servers the operator admits or refuses while the bot runs. It holds before the settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import select

from bot.errors import SetupError
from bot.store.inserts import put_row
from bot.store.tables import LARGEST_NUMBER, server_admissions
from bot.texts.text import Text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bot.store.database import Database

NO_ID = Text(
    "{text} is not the id of a server: an id has 17 to 20 digits. Turn on developer mode in Discord and "
    "right-click the server to copy it."
)


def server_id(text: str) -> int:
    """Return the id that somebody has typed. Raises `SetupError` if it is none."""
    # More digits than the largest number has would take long to read. An id begins with the milliseconds since 2015, so
    # even that of Discord's first server has 17 digits.
    if not (text.isascii() and text.isdecimal() and len(text) < 20 and 10**16 <= int(text) <= LARGEST_NUMBER):
        raise SetupError(NO_ID.fill(text=text[:40] or "–"))
    return int(text)


class AdmissionStore:
    """The decisions in one database. Raises `StoreError`. Safe for all tasks of one event loop."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def all(self) -> Mapping[int, bool]:
        """Return for each server that was decided on whether it is served."""
        return {row.guild_id: row.served for row in await self._database.rows(select(server_admissions))}

    async def put(self, guild_id: int, *, served: bool) -> None:
        """Let the bot serve a server, or leave it."""
        async with self._database.writing() as connection:
            await put_row(connection, server_admissions, {"guild_id": guild_id}, {"served": served})
