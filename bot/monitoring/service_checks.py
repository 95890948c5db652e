"""Checks every few seconds whether the database can be written, the disk has space and Discord is connected.

What it finds are faults for `bot.health`.

`HealthProbes` answers what monitoring asks (`bot.web.server`): is the process alive, can it do its work, and its
metrics. The answers hold kinds and our own sentences, and nothing about people.
"""

from __future__ import annotations

import asyncio
import shutil
from collections import Counter
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final, Protocol

import structlog

from bot.background_task import background_task
from bot.health import FaultKind, HealthFault
from bot.shards import ranges
from compaction.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
    from pathlib import Path

    from bot.clock import Clock
    from bot.health import Health
    from bot.shards import Shards

log = structlog.get_logger()

CHECK_EVERY_S = 5.0
# A disk of another machine may be away, and then its driver keeps whoever asks without end.
DISK_ANSWERS_S = 5.0
# Another program may hold the database for a moment, as a backup does.
REFUSALS = 2
# A day of talk, its log and a backup of a small database need less. Below this, one bad day fills the disk.
LEAST_FREE_BYTES = 300_000_000
# discord.py comes back from most losses within seconds.
DISCORD_AWAY_S = 60.0

DATABASE_FAULT = HealthFault(
    FaultKind.DATABASE,
    "The database cannot be written, so turns are kept in memory only. The log says why (`roomtone tail`).",
)
DISK_SILENT = HealthFault(
    FaultKind.DISK,
    "The disk with the data folder does not answer. Look at the machine's disks, and at the network if the folder is "
    "on another machine.",
)
# The system lets the process write on into its open files, also into deleted ones.
FOLDER_GONE = HealthFault(
    FaultKind.DISK,
    "The data folder is gone: it was moved or deleted. What is said now may be lost when I end. Put it back, or stop "
    "me and start me again: then I begin a new one.",
)
DISCORD_AWAY = (
    "Discord's gateway has been away for more than a minute{shards}. Check the network and status.discord.com."
)


class GatewayState(Protocol):
    """The connections to Discord, one for each of `shards`."""

    shards: Shards

    @property
    def away(self) -> Mapping[int, float]:
        """Return the shards whose connection is lost, with the monotonic seconds since when."""


class ServiceChecks:
    """The checks of one process. `write`: tries to write into the database, and raises `StoreError`.

    *Ownership*: `running` owns the task `health-checks`, and that the task `disk-look`, one at a time.
    """

    def __init__(self, write: Callable[[], Awaitable[object]], data_dir: Path, *, clock: Clock) -> None:
        self._write = write
        self._data_dir = data_dir
        self._clock = clock
        self._refusals = 0
        self._disk_fault: HealthFault | None = None
        # Until the disk answers: its thread cannot be cancelled.
        self._looking: asyncio.Task[HealthFault | None] | None = None
        # The client is made after the stores.
        self.gateway: GatewayState | None = None

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Check for the duration of the block."""
        async with background_task(self.run(), name="health-checks"):
            yield

    async def run(self) -> None:
        """Check now and every few seconds, until cancelled."""
        try:
            while True:
                await self.check()
                await self._clock.sleep(CHECK_EVERY_S)
        finally:
            if self._looking is not None:
                self._looking.cancel()

    async def check(self) -> None:
        """Check once. Never raises."""
        try:
            await self._write()
        except StoreError as error:
            self._refusals += 1
            if self._refusals == REFUSALS:
                log.error("database_not_writable", problem=error)  # noqa: TRY400 - the sentence says it
        else:
            if self._refusals >= REFUSALS:
                log.info("database_writable_again")
            self._refusals = 0
        await self._look_at_disk()

    async def _look_at_disk(self) -> None:
        if self._looking is None:
            self._looking = asyncio.create_task(asyncio.to_thread(_disk_fault, self._data_dir), name="disk-look")
        done, _ = await asyncio.wait({self._looking}, timeout=DISK_ANSWERS_S)
        if done:
            self._disk_fault, self._looking = self._looking.result(), None
        else:
            self._disk_fault = DISK_SILENT

    def faults(self) -> list[HealthFault]:
        """Return what was wrong at the last check."""
        found = [DATABASE_FAULT] if self._refusals >= REFUSALS else []
        if self._disk_fault is not None:
            found.append(self._disk_fault)
        if self.gateway is not None:
            found += _discord_faults(self.gateway, self._clock.monotonic())
        return found


def _discord_faults(gateway: GatewayState, now: float) -> list[HealthFault]:
    away = [shard for shard, since in gateway.away.items() if now - since >= DISCORD_AWAY_S]
    if not away:
        return []
    about = f" for shard {ranges(away)} of {gateway.shards.total}" if gateway.shards.is_divided else ""
    return [HealthFault(FaultKind.DISCORD, DISCORD_AWAY.format(shards=about))]


def _disk_fault(folder: Path) -> HealthFault | None:
    """Return what is wrong with the disk of a folder. One that does not tell has room."""
    try:
        free_bytes = shutil.disk_usage(folder).free
    except FileNotFoundError:
        return FOLDER_GONE
    except OSError:
        return None
    if free_bytes >= LEAST_FREE_BYTES:
        return None
    sentence = f"The disk is nearly full: {free_bytes // 1_000_000} MB are free in the data folder. Make room."
    return HealthFault(FaultKind.DISK, sentence)


# The `status` of liveness, by which `roomtone doctor` recognises a bot.
ALIVE: Final = "alive"
DEAD: Final = "dead"
DEGRADED = "{count} of my parts fail and others stand in for them; /status in Discord says which."


class HealthProbes:
    """The probes of one process. `metrics`: returns the metrics and their content type."""

    def __init__(self, health: Health, metrics: Callable[[], tuple[bytes, str]]) -> None:
        self._health = health
        self.metrics = metrics

    def liveness(self) -> tuple[bool, Mapping[str, object]]:
        """Return whether the process is alive, and the JSON that says why not: none of its tasks has ended, and nothing
        has failed for good that a new process would have. That it answers shows that the event loop runs.
        """
        if not self._health.needs_restart:
            return True, {"status": ALIVE, "causes": []}
        causes = [
            {"cause": "task", "sentence": f"My task {name} has ended, which is a defect: restart me. The log says why."}
            for name in self._health.dead_tasks()
        ]
        causes += [
            {"cause": fault.kind.value, "sentence": fault.sentence}
            for fault in self._health.faults()
            if fault.needs_restart
        ]
        return False, {"status": DEAD, "causes": causes}

    def readiness(self) -> tuple[bool, Mapping[str, object]]:
        """Return whether the bot can do its work now, and the JSON that says why not. The same sentence about several
        rooms is given once, with their number.
        """
        faults = Counter(self._health.faults())
        causes = [
            {"cause": fault.kind.value, "sentence": fault.sentence, "count": count} for fault, count in faults.items()
        ]
        degraded = self._health.degraded_count()
        notes = [DEGRADED.format(count=degraded)] if degraded else []
        return not faults, {"status": "not_ready" if faults else "ready", "causes": causes, "notes": notes}
