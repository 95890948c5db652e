"""Checks every few seconds whether the database can be written and the disk has space.

What it finds are faults for `bot.health`.

`HealthProbes` answers what monitoring asks (`bot.web.server`): is the process alive, can it do its work, and its
metrics. The answers hold kinds and our own sentences, and nothing about people.
"""

from __future__ import annotations

import asyncio
import shutil
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import structlog

from bot.background_task import background_task
from bot.health import FaultDates, FaultKind, Health, HealthFault, database_fault
from bot.texts.catalogue import ENGLISH
from bot.texts.text import Text, in_language
from compaction.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
    from pathlib import Path

    from bot.clock import Clock
    from bot.monitoring.metrics import Metrics

log = structlog.get_logger()

CHECK_EVERY_S = 5.0
# A disk of another machine may be away, and then its driver keeps whoever asks without end.
DISK_ANSWERS_S = 5.0
# Another program may hold the database for a moment, as a backup does.
REFUSALS = 2
# A day of talk, its log and a backup of a small database need less. Below this, one bad day fills the disk.
LEAST_FREE_BYTES = 300_000_000

DISK_SILENT = HealthFault(
    FaultKind.DISK,
    Text("The disk with my data does not answer."),
    "Look at the machine's disks, and at the network if the folder is on another machine.",
)
# The system lets the process write on into its open files, also into deleted ones.
FOLDER_GONE = HealthFault(
    FaultKind.DISK,
    Text(
        "My data folder or its database is gone, because somebody moved or deleted it. If I stop, what "
        "you say now can be lost."
    ),
    "Put it back, or stop me and start me again: then I begin a new one.",
)


class ServiceChecks:
    """The checks of one process. `write`: tries to write into the database, and raises `StoreError`. `database`: its
    file; None: it is not here.

    *Ownership*: `running` owns the task `health-checks`, and that the task `disk-look`, one at a time.
    """

    def __init__(
        self, write: Callable[[], Awaitable[object]], data_dir: Path, *, clock: Clock, database: Path | None = None
    ) -> None:
        self._write = write
        self._database = database
        self._data_dir = data_dir
        self._clock = clock
        self._refusals = 0
        self._dates = FaultDates(clock)
        self._found = list[HealthFault]()
        # Until the disk answers: its thread cannot be cancelled.
        self._looking: asyncio.Task[HealthFault | None] | None = None

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
        found = list[HealthFault]()
        try:
            await self._write()
        except StoreError as error:
            self._refusals += 1
            if self._refusals >= REFUSALS:
                found.append(database_fault(error))
            if self._refusals == REFUSALS:
                log.error("database_not_writable", problem=error)  # noqa: TRY400 - the sentence says it
        else:
            if self._refusals >= REFUSALS:
                log.info("database_writable_again")
            self._refusals = 0
        if (disk := await self._look_at_disk()) is not None:
            found.append(disk)
        self._found = self._dates.dated(found)

    async def _look_at_disk(self) -> HealthFault | None:
        if self._looking is None:
            self._looking = asyncio.create_task(
                asyncio.to_thread(disk_fault, self._data_dir, self._database), name="disk-look"
            )
        done, _ = await asyncio.wait({self._looking}, timeout=DISK_ANSWERS_S)
        if not done:
            return DISK_SILENT
        looked, self._looking = self._looking, None
        return looked.result()

    def faults(self) -> list[HealthFault]:
        """Return what was wrong at the last check."""
        return self._found


def disk_fault(folder: Path, database: Path | None = None) -> HealthFault | None:
    """Return what is wrong with a folder, the file of the database, or the disk. One that does not tell has room."""
    try:
        if database is not None:
            database.stat()
        free_bytes = shutil.disk_usage(folder).free
    except FileNotFoundError:
        return FOLDER_GONE
    except OSError:
        return None
    if free_bytes >= LEAST_FREE_BYTES:
        return None
    return HealthFault(
        FaultKind.DISK,
        Text("The disk is nearly full: {free} MB are left in the data folder.", free=free_bytes // 1_000_000),
        "Make room before you restart me: when it is full, I keep what is said in memory only.",
    )


class HealthProbes:
    """The probes of one process."""

    def __init__(self, health: Health, metrics: Metrics) -> None:
        self._health = health
        self.metrics = metrics

    def liveness(self) -> tuple[bool, Mapping[str, object]]:
        """Return whether the process is alive, and the JSON that says why not: none of its tasks has ended, and nothing
        has failed for good that a new process would have. That it answers shows that the event loop runs.
        """
        causes = self._json(fault for fault in self._health.faults() if fault.needs_restart)
        return not causes, {"status": "dead" if causes else "alive", "causes": causes}

    def readiness(self) -> tuple[bool, Mapping[str, object]]:
        """Return whether the bot can do its work now, and the JSON that says why not; in `notes` what else is wrong."""
        faults = self._health.faults()
        causes = self._json(fault for fault in faults if fault.blocks)
        notes = self._json(fault for fault in faults if not fault.blocks)
        return not causes, {"status": "not_ready" if causes else "ready", "causes": causes, "notes": notes}

    def _json(self, faults: Iterable[HealthFault]) -> list[Mapping[str, object]]:
        """Return faults as JSON, each sentence about several rooms once, with their number and the longest time."""
        now, alike = self._health.now(), dict[str, list[HealthFault]]()
        for fault in faults:
            alike.setdefault(fault.what, []).append(fault)
        return [
            {
                "cause": first.kind.value,
                "sentence": in_language(first.what, ENGLISH),
                "acts": first.acts.value,
                "remedy": in_language(first.remedy, ENGLISH),
                "since_s": round(max(now - (each.since or now) for each in (first, *others))),
                "count": 1 + len(others),
            }
            for first, *others in alike.values()
        ]
