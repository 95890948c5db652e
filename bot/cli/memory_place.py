"""The database that `roomtone memory` and `roomtone explain` work on: the one of the settings, and only where it is."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from bot.store.database import Database
    from config.schema import Settings


@asynccontextmanager
async def stored(settings: Settings) -> AsyncIterator[Database]:
    """Open the database. Raises `SetupError` where there is none yet, `StoreError` where it cannot be opened."""
    from bot.errors import SetupError
    from bot.store.database import open_database

    storage = settings.storage
    if not storage.database_path.is_file():
        raise SetupError(
            f"There is no memory yet at {storage.database_path}: `roomtone run` makes it. If it lies elsewhere, set "
            "storage.data_dir."
        )
    async with open_database(
        storage.database_path, synchronous=storage.synchronous, busy_timeout_s=storage.busy_timeout_s
    ) as database:
        yield database
