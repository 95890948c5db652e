"""Divides a PostgreSQL database among the processes of one bot: one serves each shard.

Two processes that serve the same servers would join the same channels and answer twice. So each takes an advisory lock
for each of its shards, on a connection of its own; the locks end with their process, however that ends. A shard's lock
also says of how many shards it is one, and all must agree on that. Commands such as `roomtone explain` take none. If
the connection is lost, a task takes the locks again.
"""

from __future__ import annotations

import asyncio
import math
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

import psycopg
import structlog

from bot.background_task import background_task
from bot.shards import MOST_SHARDS, Shards, Succession, ranges
from bot.texts.text import Text
from compaction.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence

    from bot.store.dialects.port import BotLock

log = structlog.get_logger()

# The process before may still be closing, or its machine may have died: the server notices that within half a minute.
WAIT_S = 40.0
RETRY_S = 1.0
CHECK_S = 10.0
ANSWER_S = 5.0
# Held only while a process compares its shards with those of the others.
_GATE = "SELECT pg_advisory_xact_lock(pg_catalog.hashtextextended('roomtone bot ' || current_schema(), 0))"
# A shard's lock is of one class for the tables that the search path names. Its number has the total above the shard.
_TOTAL_SHIFT = 15
assert MOST_SHARDS << _TOTAL_SHIFT < 2**31, "the number of a lock has 31 bits"
# The numbers of the locks that other processes hold. A process gives its connections a name that no other one has, so a
# connection that it has lost, which the server may not have noticed yet, is not taken for another bot's.
HELD = """
    SELECT objid::bigint FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 2 AND granted
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
    AND classid::bigint =
        mod(hashtext('roomtone shards ' || current_schema())::bigint + 4294967296, 4294967296)
    AND pid NOT IN (
        SELECT pid FROM pg_stat_activity WHERE application_name = current_setting('application_name')
    )
"""
_TAKE = """
    SELECT pg_advisory_lock(hashtext('roomtone shards ' || current_schema()), number) FROM unnest(%s::int[]) AS number
"""
# Ends what a process that hangs still has open: all connections of those that hold one of these locks
# (`bot.store.dialects.postgresql` names them).
_END_HOLDERS = """
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'roomtone %%'
    AND application_name IN (
        SELECT application_name FROM pg_stat_activity JOIN pg_locks USING (pid)
        WHERE locktype = 'advisory' AND objsubid = 2 AND granted AND objid = ANY(%s::bigint[]::oid[])
        AND pg_locks.database = (SELECT oid FROM pg_database WHERE datname = current_database())
        AND classid::bigint =
            mod(hashtext('roomtone shards ' || current_schema())::bigint + 4294967296, 4294967296)
        AND pid <> pg_backend_pid()
    )
"""


@asynccontextmanager
async def held_lock(
    options: Mapping[str, Any], place: str, shards: Shards, succession: Succession, *, wait_s: float = WAIT_S
) -> AsyncIterator[BotLock]:
    """Hold the locks of a bot with these shards. Owns the task `store-bot-lock`.

    Raises `StoreError` if another process has one of them, or another total, for longer than `wait_s`, unless
    `succession` is to follow it; and `psycopg.Error`.
    """
    if succession is Succession.TAKES_OVER:
        await _end_holders(options, shards)
    if succession is Succession.FOLLOWS:
        wait_s = math.inf
    lock = _HeldLock(options, place, shards, await _locked(options, place, shards, wait_s))
    try:
        async with background_task(lock.keep(), name="store-bot-lock"):
            yield lock
    finally:
        await lock.give_up()


def held_shards(connection: psycopg.Connection[Any]) -> list[Shards]:
    """Return the shards that running processes serve now, for each total: one, unless something is wrong."""
    return shards_of_numbers([number for (number,) in connection.execute(HELD).fetchall()])


def refusal(shards: Shards, others: Sequence[Shards], place: str) -> Text | None:
    """Return why a process may not serve `shards` beside those that `others` serve; None: it may."""
    for other in others:
        if other.total != shards.total:
            return Text(
                "This bot divides the servers into {ours} shards, but the bots that run with {path} "
                "divide them into {theirs}. Start all of them with the same number (`roomtone run "
                "--shards`; without it, the number is 1).",
                path=place,
                theirs=other.total,
                ours=shards.total,
            )
        both = set(shards.ids) & set(other.ids)
        if both and not shards.is_divided:
            return Text(
                "Another bot runs with {path}. Stop it, or give each bot its own database. If not, both would answer.",
                path=place,
            )
        if both:
            return Text(
                "Another process of this bot already serves shard {both} of {total} ({path}). Stop "
                "it, or start this one with other shards. If not, both would answer.",
                both=ranges(both),
                total=shards.total,
                path=place,
            )
    return None


def shards_of_numbers(numbers: Sequence[int]) -> list[Shards]:
    """Return the shards of the locks with these numbers (`HELD`), for each total."""
    found: dict[int, set[int]] = {}
    for number in numbers:
        found.setdefault(number >> _TOTAL_SHIFT, set()).add(number & (1 << _TOTAL_SHIFT) - 1)
    return [Shards(tuple(sorted(ids)), total) for total, ids in sorted(found.items())]


def _numbers(shards: Shards) -> list[int]:
    """Return the numbers of the locks of these shards."""
    return [shards.total << _TOTAL_SHIFT | shard for shard in shards.ids]


async def _end_holders(options: Mapping[str, Any], shards: Shards) -> None:
    """End the connections of processes that hold one of the locks."""
    async with await psycopg.AsyncConnection.connect(**{**options, "autocommit": True}) as connection:
        ended = await (await connection.execute(_END_HOLDERS, [_numbers(shards)])).fetchall()
    if ended:
        log.warning("stale_bot_disconnected", connections=len(ended))


async def _locked(
    options: Mapping[str, Any], place: str, shards: Shards, wait_s: float
) -> psycopg.AsyncConnection[Any]:
    """Return a connection that holds the locks."""
    begun_at = asyncio.get_running_loop().time()
    is_logged = False
    while True:
        try:
            connection = await psycopg.AsyncConnection.connect(**{**options, "autocommit": True})
        except psycopg.Error:
            # Whoever follows another process outlasts a database that is away for a while.
            if not math.isinf(wait_s):
                raise
            await asyncio.sleep(RETRY_S)
            continue
        try:
            async with asyncio.timeout(ANSWER_S):
                refused = await _try_to_lock(connection, shards, place)
            if refused is None:
                return connection
        except BaseException:
            await connection.close()
            raise
        await connection.close()
        if asyncio.get_running_loop().time() - begun_at >= wait_s:
            raise StoreError(refused)
        if not is_logged:
            log.warning("waiting_for_other_bot", problem=refused, up_to_s=None if math.isinf(wait_s) else wait_s)
            is_logged = True
        await asyncio.sleep(RETRY_S)


async def _try_to_lock(connection: psycopg.AsyncConnection[Any], shards: Shards, place: str) -> Text | None:
    """Take the locks; return why that cannot be, or None."""
    async with connection.transaction():
        await connection.execute(_GATE)
        numbers = [number for (number,) in await (await connection.execute(HELD)).fetchall()]
        refused = refusal(shards, shards_of_numbers(numbers), place)
        if refused is None:
            await connection.execute(_TAKE, [_numbers(shards)])
        return refused


class _HeldLock:
    """The locks, and the connection that has them: None while they are lost. Implements `BotLock`."""

    def __init__(
        self, options: Mapping[str, Any], place: str, shards: Shards, connection: psycopg.AsyncConnection[Any]
    ) -> None:
        self._options = options
        self._place = place
        self._shards = shards
        self._connection: psycopg.AsyncConnection[Any] | None = connection
        self.has_rival = False
        self._lost = asyncio.Event()
        # One look at a time: both would take the locks again.
        self._looking = asyncio.Lock()

    async def keep(self) -> None:
        """Ask the connection now and then, and take the locks again if they were lost."""
        while True:
            await asyncio.sleep(CHECK_S)
            await self._answers()

    async def look(self) -> bool:
        if not await self._answers():
            # The connection was lost, perhaps with the locks.
            await self._answers()
        return self.has_rival

    async def taken_over(self) -> None:
        await self._lost.wait()

    async def _answers(self) -> bool:
        """Ask the connection, or take the locks again if there is none. Return whether the database answers."""
        async with self._looking:
            try:
                await self._check()
                self.has_rival = False
            except StoreError as error:
                self.has_rival = True
                self._lost.set()
                log.error("second_bot_on_database", problem=error)  # noqa: TRY400 - a sentence, no traceback
            except (psycopg.Error, TimeoutError, OSError):
                if self._connection is not None:
                    log.warning("bot_lock_lost", remedy="look at the server of the database")
                await self.release()
                return False
            return True

    async def _check(self) -> None:
        if self._connection is None:
            self._connection = await _locked(self._options, self._place, self._shards, 0.0)
            log.info("bot_lock_held_again")
        async with asyncio.timeout(ANSWER_S):
            await self._connection.execute("SELECT 1")

    async def give_up(self) -> None:
        """Let the next process have the locks at once, not when the server notices that the connection is closed."""
        if self._connection is not None:
            with suppress(psycopg.Error, TimeoutError, OSError):
                async with asyncio.timeout(ANSWER_S):
                    await self._connection.execute("SELECT pg_advisory_unlock_all()")
        await self.release()

    async def release(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()
