"""Stores what belongs to a server: what its managers have chosen, who opted out there, whether the operator admits it,
and what it has used. All raise `StoreError`, and are safe for all tasks of one event loop.

Choices (`bot.server_settings`) are one row for each server, as JSON, so that a new choice needs no migration; what is
read is checked.
"""

from __future__ import annotations

import re
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any

import structlog
from sqlalchemy import Row, and_, delete, func, select, update

from bot.cost import Cost
from bot.errors import SetupError
from bot.server_settings import ServerSettings, from_damaged, from_json, to_json, without_person
from bot.store.inserts import insert_into, put_row
from bot.store.own_rows import forget_own_rows
from bot.store.tables import LARGEST_NUMBER, hearing_opt_outs, server_admissions, server_settings, server_usage
from bot.texts.text import Text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sqlalchemy.ext.asyncio import AsyncConnection

    from bot.clock import Clock
    from bot.store.database import Database

log = structlog.get_logger()

SLOT_S = 600
_AMOUNTS = tuple(field.name for field in fields(Cost))
# A month and some days.
KEPT_S = 40 * 86_400

NO_ID = Text(
    "{text} is not the id of a server: an id has 17 to 20 digits. Turn on developer mode in Discord and "
    "right-click the server to copy it."
)


class SqlServerSettings:
    """The settings of all servers."""

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
    """The people who opted out of being heard, on all servers."""

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


def server_id(text: str) -> int:
    """Return the id that somebody has typed. Raises `SetupError` if it is none."""
    # More digits than the largest number has would take long to read. An id begins with the milliseconds since 2015, so
    # even that of Discord's first server has 17 digits.
    if not (text.isascii() and text.isdecimal() and len(text) < 20 and 10**16 <= int(text) <= LARGEST_NUMBER):
        raise SetupError(NO_ID.fill(text=text[:40] or "–"))
    return int(text)


class AdmissionStore:
    """Which servers the operator admits or refuses while the bot runs. It holds before the settings."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def all(self) -> Mapping[int, bool]:
        """Return for each server that was decided on whether it is served."""
        return {row.guild_id: row.served for row in await self._database.rows(select(server_admissions))}

    async def put(self, guild_id: int, *, served: bool) -> None:
        """Let the bot serve a server, or leave it."""
        async with self._database.writing() as connection:
            await put_row(connection, server_admissions, {"guild_id": guild_id}, {"served": served})


class UsageStore:
    """What each server has used, in slots of ten minutes, for 40 days. Times are Unix seconds."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, used: Mapping[int, Cost], *, now: float) -> None:
        """Add what servers have used now, by their ids, and drop what is too old."""
        async with self._database.writing() as connection:
            for guild_id, cost in used.items():
                spent = asdict(cost)
                row = insert_into(connection, server_usage).values(guild_id=guild_id, slot=int(now // SLOT_S), **spent)
                sums = {name: server_usage.c[name] + row.excluded[name] for name in spent}
                await connection.execute(row.on_conflict_do_update(index_elements=["slot", "guild_id"], set_=sums))
            await connection.execute(delete(server_usage).where(server_usage.c.slot < (now - KEPT_S) // SLOT_S))

    async def slots_of(self, guild_id: int, *, since: float) -> tuple[tuple[float, Cost], ...]:
        """Return what a server has used since then: the end of each slot, and its cost, oldest first."""
        wanted = select(server_usage).where(server_usage.c.guild_id == guild_id, server_usage.c.slot >= since // SLOT_S)
        rows = await self._database.rows(wanted.order_by(server_usage.c.slot))
        return tuple(((row.slot + 1.0) * SLOT_S, _cost(row)) for row in rows)

    async def by_server(self, *, since: float) -> Mapping[int, Cost]:
        """Return what each server has used since the slot of that time, by its id."""
        used = (func.sum(server_usage.c[name]).label(name) for name in _AMOUNTS)
        wanted = select(server_usage.c.guild_id, *used).where(server_usage.c.slot >= since // SLOT_S)
        rows = await self._database.rows(wanted.group_by(server_usage.c.guild_id))
        return {row.guild_id: _cost(row) for row in rows}


def _cost(row: Row[Any]) -> Cost:
    # PostgreSQL adds up whole numbers to decimal ones.
    return Cost(int(row.calls), int(row.tokens), row.spoken_s, row.dollars)
