"""Deletes what is older than its retention time: whole sessions, log lines, and details of archived segments.

One task for the process. It works at the start, once the rooms are known that ran on, and then once a day, whether
tiers are on or off, and never while another process does. It deletes the ended sessions of all servers, and those that
a crash left open on its own servers: the others know whether theirs go on. A session that was left open with nothing in
it, because its room never joined, is deleted after a week. Afterwards the bytes of what was deleted are wiped.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import structlog

from bot.background_task import background_task
from bot.logs.removal import drop_lines_before
from bot.server_settings import ServerSettingsBook
from bot.shards import ONLY_SHARD
from bot.store.servers import SqlServerSettings
from bot.store.session_expiry import delete_expired_sessions, delete_unused_sessions
from bot.store.tiers import TierStore
from bot.store.wiping import wipe_deleted
from compaction.errors import StoreError
from compaction.sentence_cache import clear_sentence_caches
from voice.retry_pause import retry_pause_s

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Collection, Mapping
    from pathlib import Path

    from bot.clock import Clock
    from bot.memory.people import PeopleBook
    from bot.server_settings import ServerSettings
    from bot.shards import Shards
    from bot.store.database import Database
    from bot.store.each_session import SessionResults
    from compaction.model import SessionId
    from compaction.settings import TierSettings

log = structlog.get_logger()

DAY_S = 24 * 3600.0
# How long an open session may have nothing in it. Comings and goings are turns too, so no room runs for so long without
# any.
UNUSED_S = 7 * DAY_S
# When to try again after a failure: the disk may be full, or another program may hold the database. Each further pause
# is twice as long, up to a day: a session that cannot be changed may fail for months, and each try writes the database
# anew.
RETRY_S = 3600.0
# When to try again while another process of the bot does it: that takes some seconds.
LOCKED_S = 60.0


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
    this process knows it; None: as it is stored. `shards`: other processes may have rooms open on the servers of other
    shards.
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
        # Tries in a row that were not whole.
        self._failures = 0

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Keep the retention time for the duration of the block."""
        async with background_task(self.run(), name="retention"):
            yield

    async def run(self) -> None:
        """Work at the start and once a day, until cancelled. *Cancellation* is safe at any point."""
        while True:
            await self._clock.sleep(await self._try_once())

    async def _try_once(self) -> float:
        """Return in how many seconds to work again."""
        try:
            async with self._database.work_lock("retention") as lock:
                if not await lock.taken():
                    log.info("retention_waits", reason="another_process", retry_s=LOCKED_S)
                    return LOCKED_S
                result = await self.enforce()
        except (StoreError, OSError) as error:
            retry_s = self._after_failure()
            log.warning("retention_failed", problem=error, retry_s=retry_s)
            return retry_s
        log.info(
            "retention_enforced",
            sessions_deleted=len(result.sessions),
            segments_pruned=result.pruned,
            log_lines_deleted=result.log_lines,
            wiped=result.wiped,
        )
        if not result.wiped:
            return self._after_failure()
        self._failures = 0
        return DAY_S

    def _after_failure(self) -> float:
        """Return in how many seconds to try again."""
        self._failures += 1
        return retry_pause_s(self._failures, first_s=RETRY_S, longest_s=DAY_S)

    async def enforce(self) -> RetentionResult:
        """Delete what is too old. Raises `StoreError`, and `OSError` for the log files.

        A log file or a session that fails stops nothing else: the first failure is raised when the rest is done.
        """
        now, days = self._clock.now(), self._settings.retention_days
        lines, failure = await self._drop_log_lines(now - days * DAY_S) if days else (0, None)
        await self._servers.take_over()
        keep = self._in_use
        unused = await delete_unused_sessions(self._database, before=now - UNUSED_S, keep=keep, shards=self._shards)
        failure = failure or unused.failure
        deleted = unused.results
        chosen = shorter_times(days, self._servers.all())
        for guild_id, kept_days in [*([(None, days)] if days else []), *chosen.items()]:
            before = now - kept_days * DAY_S
            expired = await delete_expired_sessions(
                self._database, before=before, keep=keep, guild_id=guild_id, shards=self._shards
            )
            deleted += expired.results
            failure = failure or expired.failure
        pruned = 0
        if self._settings.enabled:
            reduced = await self._prune(now)
            pruned, failure = sum(reduced.results), failure or reduced.failure
        # Also when nothing was deleted now: a wipe may have been cut short before. One process sees to that.
        wipes = self._shards.leads or deleted or pruned
        wiped = await wipe_deleted(self._database) if wipes else True
        # Also when nothing was deleted now: `roomtone memory prune` may have done it in another process.
        clear_sentence_caches()
        if self._people is not None:
            await self._people.reload()
        if failure is not None:
            raise failure
        return RetentionResult(deleted, pruned, lines, wiped)

    async def _drop_log_lines(self, before: float) -> tuple[int, StoreError | OSError | None]:
        """Return how many log lines were deleted, or why they could not be."""
        if self._log_folder is None:
            return 0, None
        try:
            return await asyncio.to_thread(drop_lines_before, self._log_folder, before), None
        except OSError as error:
            return 0, error

    async def _prune(self, now: float) -> SessionResults[int]:
        """Prune the segments that have been archived for long."""
        outdated = await self._tiers.archived(before=now - self._settings.prune_after_days * DAY_S)
        return await self._tiers.prune(outdated, now=now)
