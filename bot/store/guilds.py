"""Stores each guild's choices (memory mode, budget, when the bot speaks) and the people who opted out of being heard.

The choices of a guild are read once and then cached, so all changes must go through `GuildStore`.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pydantic import TypeAdapter, ValidationError
from sqlalchemy import and_, delete, select

from bot.guild import GuildChoice
from bot.store.attendance import forget_attendance
from bot.store.inserts import put_row
from bot.store.tables import guild_settings, hearing_opt_outs
from bot.texts.text import Text
from compaction.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from bot.clock import Clock
    from bot.store.database import Database

_CHOICE = TypeAdapter(GuildChoice)
UNREADABLE = Text(
    "What server {guild_id} has chosen cannot be read: the database is damaged. Restore a backup with "
    "`roomtone restore FILE`."
)


class GuildStore:
    """The choices of all guilds. Raises `StoreError`. Safe for all tasks of one event loop."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._cache: dict[int, GuildChoice] = {}
        self._watchers: list[Callable[[int, GuildChoice], None]] = []
        # By guild. A change is made of what holds, and writing it may take seconds; another begun meanwhile would be
        # lost, and a read begun meanwhile could cache what held before.
        self._one_at_a_time: defaultdict[int, asyncio.Lock] = defaultdict(asyncio.Lock)

    @contextmanager
    def watched(self, watcher: Callable[[int, GuildChoice], None]) -> Iterator[None]:
        """Call `watcher` after each change, with the guild and its new choice, while the block runs. It must return at
        once.
        """
        self._watchers.append(watcher)
        try:
            yield
        finally:
            self._watchers.remove(watcher)

    async def choice(self, guild_id: int) -> GuildChoice:
        if (known := self._cache.get(guild_id)) is not None:
            return known
        async with self._one_at_a_time[guild_id]:
            choice = self._cache[guild_id] = await self._stored(guild_id)
            return choice

    async def choose(self, guild_id: int, change: Callable[[GuildChoice], GuildChoice], *, by: int) -> GuildChoice:
        """Store what `change` makes of a guild's choice and return it. `by`: the id of the member who chose.

        After a `StoreError` the choice may be stored all the same; it then holds after the next start.
        """
        async with self._one_at_a_time[guild_id]:
            before = self._cache.get(guild_id)
            choice = change(await self._stored(guild_id) if before is None else before)
            await self._put(guild_id, choice, by=by)
            self._cache[guild_id] = choice
            for watcher in self._watchers:
                watcher(guild_id, choice)
        return choice

    async def _stored(self, guild_id: int) -> GuildChoice:
        wanted = select(guild_settings.c.choice).where(guild_settings.c.guild_id == guild_id)
        stored = await self._database.value(wanted)
        if stored is None:
            return GuildChoice()
        try:
            return _CHOICE.validate_json(stored)
        except ValidationError:
            # Not from the cause: it quotes what was chosen.
            raise StoreError(UNREADABLE.fill(guild_id=str(guild_id))) from None

    async def _put(self, guild_id: int, choice: GuildChoice, *, by: int) -> None:
        values: dict[str, object] = {
            "choice": _CHOICE.dump_json(choice, exclude_none=True).decode(),
            "changed_at": self._clock.now(),
            "changed_by": by,
        }
        async with self._database.writing() as connection:
            await put_row(connection, guild_settings, {"guild_id": guild_id}, values)


class OptOutStore:
    """The people who opted out of being heard, in all guilds. Raises `StoreError`. Safe for all tasks of one event
    loop.
    """

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def of(self, guild_id: int) -> frozenset[int]:
        wanted = select(hearing_opt_outs.c.person_id).where(hearing_opt_outs.c.guild_id == guild_id)
        return frozenset(await self._database.values(wanted))

    async def put(self, guild_id: int, person_id: int, *, out: bool) -> None:
        """Store that a person opts out of being heard in the guild (`out`), or in again."""
        same = and_(hearing_opt_outs.c.guild_id == guild_id, hearing_opt_outs.c.person_id == person_id)
        async with self._database.writing() as connection:
            await connection.execute(delete(hearing_opt_outs).where(same))
            if out:
                await forget_attendance(connection, str(person_id), guild_id=guild_id)
                values = {"guild_id": guild_id, "person_id": person_id, "since": self._clock.now()}
                await connection.execute(hearing_opt_outs.insert().values(values))
