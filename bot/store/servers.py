"""Stores what the managers of each server have chosen (`bot.server_settings`): one row for each server, as JSON.

JSON, so that a new choice needs no migration; what is read is checked.

`OptOutStore` stores the people who opted out of being heard, on all servers.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import structlog
from sqlalchemy import and_, delete, select, update

from bot.server_settings import ServerSettings, from_damaged, from_json, to_json, without_person
from bot.store.inserts import put_row
from bot.store.own_rows import forget_own_rows
from bot.store.tables import hearing_opt_outs, server_settings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sqlalchemy.ext.asyncio import AsyncConnection

    from bot.clock import Clock
    from bot.store.database import Database

log = structlog.get_logger()


class SqlServerSettings:
    """The settings of all servers. Raises `StoreError`. Safe for all tasks of one event loop."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def all(self) -> Mapping[int, ServerSettings]:
        """Return what each server has chosen. Of a damaged row, what is valid; who agrees is heard there."""
        rows = await self._database.rows(select(server_settings))
        return {row.guild_id: _read(row.guild_id, row.choices) for row in rows}

    async def put(self, guild_id: int, settings: ServerSettings, *, by: int | None) -> None:
        values: dict[str, object] = {
            "choices": to_json(settings),
            "changed_at": self._clock.now(),
            "changed_by": by,
        }
        async with self._database.writing() as connection:
            await put_row(connection, server_settings, {"guild_id": guild_id}, values)


async def servers_that_name(connection: AsyncConnection, person_id: int) -> tuple[int, ...]:
    """Return the servers whose choices name this person."""
    found = await connection.execute(select(server_settings).where(server_settings.c.choices.contains(str(person_id))))
    return tuple(row.guild_id for row in found if _names(row.choices, person_id))


def _read(guild_id: int, choices: str) -> ServerSettings:
    """Return what a server has chosen; of a damaged row, which is logged, what is valid."""
    try:
        return from_json(choices)
    except ValueError as error:
        log.error(  # noqa: TRY400 - the sentence has the cause
            "server_settings_damaged",
            guild_id=guild_id,
            problem=error,
            remedy="I hear only people there who agree, until a manager chooses again with /settings",
        )
        return from_damaged(choices)


def _names(choices: str, person_id: int) -> bool:
    try:
        return person_id in from_json(choices).auto_join_with
    except ValueError:
        # Longer ids may have this one in them. Choices that cannot be read are searched as text.
        return re.search(rf"(?<!\d){person_id}(?!\d)", choices) is not None


async def drop_person(connection: AsyncConnection, person_id: int) -> int:
    """Take a person out of all servers' choices. Returns how many servers had named them."""
    named = await servers_that_name(connection, person_id)
    for guild_id in named:
        here = server_settings.c.guild_id == guild_id
        text = (await connection.execute(select(server_settings.c.choices).where(here))).scalar_one()
        left = to_json(without_person(_read(guild_id, text), person_id))
        await connection.execute(update(server_settings).where(here).values(choices=left))
    by_them = server_settings.c.changed_by == person_id
    await connection.execute(update(server_settings).where(by_them).values(changed_by=None))
    return len(named)


class OptOutStore:
    """The people who opted out of being heard, on all servers. Raises `StoreError`. Safe for all tasks of one event
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
                await forget_own_rows(connection, str(person_id), guild_id=guild_id)
                values = {"guild_id": guild_id, "person_id": person_id, "since": self._clock.now()}
                await connection.execute(hearing_opt_outs.insert().values(values))
