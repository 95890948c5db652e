"""Checks every few seconds whether the database can be written and the disk has space.

What it finds are faults for `bot.health`. `Alarms` tells the operator which faults begin and which are over: in the
log, and by a message to the address of `monitoring.alarm_url`. A fault has no name and no word of anybody, so a message
has none.

`HealthProbes` answers what monitoring asks (`bot.web.server`): is the process alive, can it do its work, and its
metrics. The answers hold kinds and our own sentences, and nothing about people.
"""

from __future__ import annotations

import asyncio
import json
import shutil
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import structlog

from bot.background_task import background_task
from bot.errors import BotError
from bot.health import Actor, FaultDates, FaultKind, Health, HealthFault, ToldFaults, database_fault, without_repeats
from bot.outgoing_address import DeliveryError, post
from bot.texts.text import ENGLISH, Text, in_language
from compaction.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
    from pathlib import Path

    from pydantic import SecretStr

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


LOOK_EVERY_S: Final = 5.0
# A fault for the operator that is over sooner is none. Most that pass by themselves do so within minutes, like a lost
# connection. Faults for the members of a server are none of the operator's.
TOLD_AFTER_S: Final = {Actor.OPERATOR: 30.0, Actor.NOBODY: 900.0}
# What the address did not take is sent again, with what has come since. Of more sentences the oldest are dropped.
SEND_AGAIN_S: Final = 60.0
MOST_WAITING: Final = 20
SEND_TIMEOUT_S: Final = 10.0
# Discord takes 2,000.
MESSAGE_CHARS: Final = 1_900


def alarming(faults: Iterable[HealthFault], now: float) -> list[HealthFault]:
    """Return the faults that the operator is told, with what they are told afterwards. `now`: monotonic seconds."""
    return [
        replace(fault, over=Text("This problem is over: {what}", what=fault.what))
        for fault in without_repeats(faults)
        if fault.since is not None and now - fault.since >= TOLD_AFTER_S.get(fault.acts, float("inf"))
    ]


class Alarms:
    """The alarms of one process. `send`: sends a message, and returns whether it was taken; None: there is no address.

    *Ownership*: the bot runs `run` in a task.
    """

    def __init__(self, health: Health, clock: Clock, send: Callable[[str], Awaitable[bool]] | None) -> None:
        self._health = health
        self._clock = clock
        self._send = send
        self._told = ToldFaults()
        self._waiting: list[str] = []
        self._send_at = float("-inf")

    async def run(self) -> None:
        """Look every few seconds, until cancelled."""
        while True:
            await self.look()
            await self._clock.sleep(LOOK_EVERY_S)

    async def look(self) -> None:
        """Tell once what has begun and what is over."""
        now, faults = self._health.now(), self._health.faults()
        if any(fault.kind is FaultKind.DRAINING for fault in faults):
            # It hides the others, which are not over.
            return
        for sentence in self._told.news(alarming(faults, now), now):
            log.warning("alarm_told", problem=BotError(sentence))
            self._waiting = [*self._waiting, str(sentence)][-MOST_WAITING:]
        if self._send is None:
            self._waiting.clear()
        elif self._waiting and now >= self._send_at:
            if await self._send("\n".join(self._waiting)[:MESSAGE_CHARS]):
                self._waiting.clear()
            else:
                self._send_at = now + SEND_AGAIN_S


async def post_message(address: SecretStr, message: str) -> bool:
    """Send a message to a webhook: Discord reads `content`, Slack and Mattermost `text`. Return whether it was taken.
    Never raises.
    """
    body = json.dumps({"content": message, "text": message, "allowed_mentions": {"parse": []}})
    try:
        # The operator may mean their own network.
        await post(address.get_secret_value(), body.encode(), {}, private=True, within_s=SEND_TIMEOUT_S)
    except DeliveryError as error:
        log.warning("alarm_not_sent", problem=error, remedy="Check monitoring.alarm_url. It is sent again in a minute.")
        return False
    return True
