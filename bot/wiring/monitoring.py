"""Opens what monitoring needs: the health of the process, its checks and its metrics."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from bot.background_task import background_task
from bot.health import FaultKind, HealthFault
from bot.monitoring.metrics import measure_lag
from bot.monitoring.probes import HealthProbes
from bot.monitoring.service_checks import ServiceChecks
from bot.store.write_check import check_writable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager, AsyncExitStack

    from bot.clock import Clock
    from bot.events import Event, Observer
    from bot.health import Health
    from bot.monitoring.metrics import Metrics
    from bot.monitoring.traces import Traces
    from bot.settings import StorageSettings
    from bot.store.database import Database

RIVAL = HealthFault(
    FaultKind.DATABASE,
    "Another process of this bot serves the same servers with this database, so both may answer. Stop the older one.",
)
# The tasks that run until the process ends, by the beginning of their names (bot/README.md).
PROCESS_TASKS = (
    "dashboard-look",
    "discord-client",
    "health-checks",
    "loop-lag",
    "mcp-",
    "memory-release",
    "recall-indexer",
    "recap-renewal",
    "recogniser-dispatcher",
    "retention",
    "store-bot-lock",
    "transcript-expiry",
    "unstored-choices",
)


@dataclass(frozen=True, slots=True)
class Monitoring:
    """The health, checks and metrics of the process, and what monitoring is answered."""

    health: Health
    checks: ServiceChecks
    metrics: Metrics
    probes: HealthProbes

    def started(self) -> None:
        """Note that everything is open: from now on the bot may be ready, and none of its tasks may end."""
        self.health.started(task for task in asyncio.all_tasks() if task.get_name().startswith(PROCESS_TASKS))


def room_meter(metrics: Metrics, traces: Traces | None) -> Callable[[], AbstractContextManager[Observer]]:
    """Return what measures and traces a room."""
    if traces is None:
        return metrics.room

    @contextmanager
    def both() -> Iterator[Observer]:
        with metrics.room() as measure, traces.room() as trace:

            def observe(event: Event) -> None:
                measure(event)
                trace(event)

            yield observe

    return both


async def open_monitoring(
    stack: AsyncExitStack, database: Database, storage: StorageSettings, clock: Clock, metrics: Metrics
) -> Monitoring:
    """Open monitoring on `stack`, and begin to check."""
    health = metrics.health
    checks = ServiceChecks(partial(check_writable, database), storage.data_dir, clock=clock)
    health.add_fault_check(checks.faults)
    await stack.enter_async_context(checks.running())
    await stack.enter_async_context(background_task(measure_lag(metrics.on_lag, clock), name="loop-lag"))
    return Monitoring(health, checks, metrics, HealthProbes(health, metrics.scrape))
