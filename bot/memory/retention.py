"""Deletes what is older than its retention time: whole sessions, also in databases that restores have kept aside, log
lines, and details of archived segments.

One task for the process. It works at the start and then once a day, whether tiers are on or off, on the servers of this
process; not before Discord has told the time, because a machine whose clock is wrong would have everything deleted.
Afterwards the bytes are wiped of all that was deleted by then, also by `/forget-me`.
"""

from __future__ import annotations

import asyncio
import math
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import structlog

from bot.logs.log_file import drop_lines_before
from bot.server_settings import ServerSettings, ServerSettingsBook
from bot.shards import ONLY_SHARD, Shards
from bot.store.kept_aside import delete_in_copies
from bot.store.servers import SqlServerSettings
from bot.store.sessions import delete_expired_sessions
from bot.store.tiers import TierStore
from compaction.errors import StoreError
from compaction.log_events import MemoryEvent
from compaction.sentence_cache import clear_sentence_caches

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Mapping
    from pathlib import Path

    from bot.clock import Clock
    from bot.memory.people import PeopleBook
    from bot.store.database import Database
    from compaction.model import SessionId
    from compaction.settings import TierSettings

log = structlog.get_logger()

DAY_S = 24 * 3600.0
# After so long in the archive a segment keeps its short content alone; its turns stay.
PRUNE_AFTER_DAYS = 30.0
# When to try again after a failure: the disk may be full, or another program may hold the database.
RETRY_S = 3600.0
# The clocks of this machine and of Discord may differ by so much.
MOST_APART_S = 3600.0


def shorter_times(days: float, servers: Mapping[int, ServerSettings]) -> dict[int, float]:
    """Return for how many days the servers keep what is said that chose a shorter time than `days` (0: for ever)."""
    chosen = ((guild_id, each.retention_days) for guild_id, each in servers.items())
    return {guild_id: theirs for guild_id, theirs in chosen if theirs and (not days or theirs < days)}


@dataclass(frozen=True, slots=True)
class RetentionResult:
    """What was deleted. `wiped`: whether no byte of it is left in the index and in the journal."""

    sessions: tuple[SessionId, ...] = ()
    pruned: int = 0
    log_lines: int = 0
    wiped: bool = True


class Retention:
    """The retention of one database and its logs.

    `log_folder`: None leaves the logs alone. `people`: its facts in memory are read again when something was deleted.
    `in_use`: the sessions of open rooms, which are never deleted. `servers`: what each server has chosen, as
    this process knows it; None: as it is stored. `shards`: those of this process. `server_time`: returns the time by
    Discord's clock in UTC epoch seconds, or raises `OSError`; None: this machine's clock is believed.
    """

    def __init__(
        self,
        database: Database,
        settings: TierSettings,
        *,
        clock: Clock,
        log_folder: Path | None = None,
        people: PeopleBook | None = None,
        in_use: Collection[SessionId] = (),
        servers: ServerSettingsBook | None = None,
        shards: Shards = ONLY_SHARD,
        server_time: Callable[[], Awaitable[float]] | None = None,
    ) -> None:
        self._database = database
        self._tiers = TierStore(database)
        self._settings = settings
        self._clock = clock
        self._log_folder = log_folder
        self._people = people
        self._in_use = in_use
        self._servers = servers or ServerSettingsBook(SqlServerSettings(database, clock))
        self._shards = shards
        self._server_time = server_time

    async def run(self) -> None:
        """Work at the start and once a day, until cancelled. *Cancellation* is safe at any point."""
        while True:
            await self._clock.sleep(await self._try_once())

    async def _try_once(self) -> float:
        """Return in how many seconds to work again."""
        try:
            await self._check_clock()
            result = await self.enforce()
        except (StoreError, OSError) as error:
            log.warning(MemoryEvent.RETENTION_FAILED, problem=error, retry_s=RETRY_S)
            return RETRY_S
        log.info(
            MemoryEvent.RETENTION_ENFORCED,
            sessions_deleted=len(result.sessions),
            segments_pruned=result.pruned,
            log_lines_deleted=result.log_lines,
            wiped=result.wiped,
        )
        return DAY_S if result.wiped else RETRY_S

    async def _check_clock(self) -> None:
        """Raise `OSError` if this machine's clock is wrong, or if Discord does not tell."""
        if self._server_time is not None and abs(await self._server_time() - self._clock.now()) > MOST_APART_S:
            raise OSError("This machine's clock is wrong: Discord's shows another time. Set it right.")

    async def enforce(self) -> RetentionResult:
        """Delete what is too old, of the servers of this process. Raises `StoreError`, and `OSError` for the log
        files.
        """
        now, days = self._clock.now(), self._settings.retention_days
        await self._servers.load()
        deleted = await self._delete_expired(self._database, now=now)
        pruned = 0
        if self._shards.leads:
            outdated = await self._tiers.archived(before=now - PRUNE_AFTER_DAYS * DAY_S)
            pruned = await self._tiers.prune(outdated, now=now)
            too_old = now - days * DAY_S if days else -math.inf
            await delete_in_copies(
                self._database, partial(self._has_deleted_in_copy, now=now), unreadable_before=too_old
            )
        # Also when nothing was deleted now: people were forgotten, and a wipe may have been cut short before.
        wiped = await self._database.wipe()
        # Also when nothing was deleted now: `roomtone memory prune` may have done it in another process.
        clear_sentence_caches()
        if self._people is not None:
            await self._people.reload()
        lines = 0
        if days and self._log_folder is not None:
            lines = await asyncio.to_thread(drop_lines_before, self._log_folder, now - days * DAY_S)
        return RetentionResult(deleted, pruned, lines, wiped)

    async def _delete_expired(self, database: Database, *, now: float) -> tuple[SessionId, ...]:
        """Delete the sessions that are too old by what the operator and the servers chose; return them."""
        days = self._settings.retention_days
        deleted: list[SessionId] = []
        chosen = shorter_times(days, self._servers.all())
        for guild_id, kept_days in [*([(None, days)] if days else []), *chosen.items()]:
            before = now - kept_days * DAY_S
            deleted += await delete_expired_sessions(
                database, before=before, keep=self._in_use, guild_id=guild_id, shards=self._shards
            )
        return tuple(deleted)

    async def _has_deleted_in_copy(self, copy: Database, *, now: float) -> bool:
        """Delete what is too old in a database that was kept aside. It is wiped in any case, as this one is."""
        await self._delete_expired(copy, now=now)
        return True
