"""Opens the shared screens and the web pages: the readers, the web server, and the service behind `/watch`."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import structlog

from bot.errors import SetupError
from bot.screen.readers import describe_reader, open_readers
from bot.screen.screens import Screens
from bot.screen.watch_service import WatchService
from bot.web.server import WebServer
from bot.wiring.dashboard import write_link

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AsyncExitStack

    from bot.clock import Clock
    from bot.dashboard.service import DashboardService
    from bot.llm.model_calls import ModelCall
    from bot.participation.all_guilds import GuildParticipations
    from bot.web.probes import Probes
    from bot.wiring.settings import BotSettings

log = structlog.get_logger()


async def open_screens(
    stack: AsyncExitStack,
    settings: BotSettings,
    clock: Clock,
    *,
    on_call: Callable[[ModelCall], None],
) -> Screens:
    """Return the shared screens of the rooms of this process, with their readers, which load when somebody shares.

    `on_call`: gets each call of a vision model.
    """
    readers = await stack.enter_async_context(
        open_readers(settings.screen, settings.llm, settings.budget, monotonic=clock.monotonic, on_call=on_call)
    )
    return Screens(
        settings.screen,
        readers,
        clock=clock,
        bot_name=settings.brain.name,
        reading=describe_reader(settings.screen, settings.llm),
    )


async def open_pages(
    stack: AsyncExitStack,
    settings: BotSettings,
    participation: GuildParticipations,
    screens: Screens,
    *,
    dashboard: DashboardService | None = None,
    probes: Probes | None = None,
) -> tuple[WatchService, WebServer]:
    """Open the web server on `stack`, and the service of /watch. Raises `SetupError`.

    If the web server cannot listen, it tries again when somebody first asks for a link. `screens`: those of all
    rooms. `dashboard`: what is at /. `probes`: what monitoring is answered.
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
    return WatchService(screens, web, participation), web
