"""Opens what shows the bot to others: the web pages, the dashboard, the shared screens, and what monitoring reads."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

import structlog

from bot.background_task import background_task
from bot.errors import SetupError
from bot.health import FaultKind, Health, HealthFault
from bot.monitoring.service_checks import Alarms, HealthProbes, ServiceChecks, post_message
from bot.private_files import write_private_text
from bot.screen.readers import describe_reader, open_readers
from bot.screen.screens import Screens
from bot.store.sessions import check_writable
from bot.texts.text import Text
from bot.web.server import WebServer
from bot.web.watching import WatchService
from voice.circuit_breaker import Outage

if TYPE_CHECKING:
    from contextlib import AsyncExitStack
    from pathlib import Path

    from bot.clock import Clock
    from bot.dashboard.service import DashboardService
    from bot.llm.model_calls import CallMeter
    from bot.monitoring.metrics import Metrics
    from bot.store.database import Database
    from bot.wiring.settings import BotSettings

log = structlog.get_logger()

# In the data folder: the login link that works now. Each works once, and a bot may run for months.
LINK_FILE = "dashboard-link"


def write_link(folder: Path, link: str) -> None:
    """Write the login link where only the user who runs the bot can read it."""
    try:
        write_private_text(folder / LINK_FILE, f"{link}\n")
    except OSError as error:
        log.warning("dashboard_link_not_written", error_class=type(error).__name__)


PAGES = Text("My web server")
WITHOUT_PAGES = Text("there is no dashboard, nobody can share a screen, and monitoring gets no answer")
RIVAL = HealthFault(
    FaultKind.DATABASE,
    Text("Another copy of this bot works on the same servers with this database. So both can answer."),
    "Stop the older one.",
)
# The tasks that run until the process ends, by the beginning of their names (bot/README.md).
PROCESS_TASKS = (
    "admissions",
    "alarms",
    "dashboard-look",
    "discord-client",
    "due-reminders",
    "health-checks",
    "loop-lag",
    "mcp-",
    "memory-release",
    "posted-renewal",
    "recall-indexer",
    "recogniser-dispatcher",
    "retention",
    "session-webhooks",
    "spending",
    "store-bot-lock",
)


def note_start(health: Health) -> None:
    """Note that everything is open: from now on the bot may be ready, and none of its tasks may end."""
    health.started(task for task in asyncio.all_tasks() if task.get_name().startswith(PROCESS_TASKS))


async def open_monitoring(
    stack: AsyncExitStack, database: Database, settings: BotSettings, clock: Clock, metrics: Metrics, health: Health
) -> None:
    """Open monitoring on `stack`, and begin to check."""
    folder, address = settings.storage.data_dir, settings.monitoring.alarm_url
    checks = ServiceChecks(partial(check_writable, database), folder, clock=clock, database=database.file)
    health.add_check(checks.faults)
    await stack.enter_async_context(checks.running())
    await stack.enter_async_context(background_task(metrics.measure_lag(clock), name="loop-lag"))
    alarms = Alarms(health, clock, None if address is None else partial(post_message, address))
    await stack.enter_async_context(background_task(alarms.run(), name="alarms"))


async def open_screens(
    stack: AsyncExitStack,
    settings: BotSettings,
    clock: Clock,
    *,
    meter: CallMeter,
) -> Screens:
    """Return the shared screens of the rooms of this process, with their readers, which load when somebody shares.

    `meter`: gets each call of a vision model.
    """
    readers = await stack.enter_async_context(
        open_readers(settings.screen, settings.llm, settings.budget, clock=clock, meter=meter)
    )
    return Screens(
        readers,
        clock=clock,
        bot_name=settings.brain.name,
        reading=describe_reader(settings.screen, settings.llm),
        enabled=settings.screen.enabled,
        remark_every_s=settings.tuning.screen_remark_every_s,
    )


async def open_pages(
    stack: AsyncExitStack,
    settings: BotSettings,
    screens: Screens,
    health: Health,
    *,
    dashboard: DashboardService | None = None,
    probes: HealthProbes | None = None,
) -> tuple[WatchService, WebServer]:
    """Open the web server on `stack`, and the service of /watch. Raises `SetupError`.

    If the web server cannot listen, it tries again when somebody first asks for a link. `screens`: those of all
    rooms. `health`: tells that it does not listen. `dashboard`: what is at /. `probes`: what monitoring is answered.
    """
    on_link = partial(write_link, settings.storage.data_dir)
    web = await stack.enter_async_context(
        WebServer(settings.web, screens, dashboard=dashboard, probes=probes, on_login_link=on_link)
    )
    try:
        await web.start()
    except SetupError as error:
        # Conversations work without the web server; people who ask for a link get the error.
        log.warning("web_not_listening", problem=error)
        outage = Outage(health.now(), None, error)
        health.add_outage(FaultKind.PAGES, PAGES, WITHOUT_PAGES, lambda: None if web.is_listening else outage)
    return WatchService(screens, web), web
