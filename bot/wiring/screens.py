"""Opens the shared screens: the readers, the web pages, and the service behind the `/watch` commands."""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from bot.errors import SetupError
from bot.screen.readers import describe_reader, open_readers
from bot.screen.screens import Screens
from bot.screen.watch_service import WatchService
from bot.web.server import WebServer

if TYPE_CHECKING:
    from contextlib import AsyncExitStack

    from bot.clock import Clock
    from bot.participation.guild_participation import GuildParticipations
    from bot.wiring.settings import BotSettings

log = structlog.get_logger()


async def open_screens(
    stack: AsyncExitStack, settings: BotSettings, participation: GuildParticipations, clock: Clock
) -> tuple[Screens, WatchService]:
    """Open the readers and the web server on `stack`. Raises `SetupError`.

    The web server listens at once if it has a public URL, otherwise when somebody first asks for a link.
    """
    readers = await stack.enter_async_context(
        open_readers(settings.screen, settings.llm, settings.budget, monotonic=clock.monotonic)
    )
    screens = Screens(
        settings.screen,
        readers,
        clock=clock,
        bot_name=settings.brain.name,
        reading=describe_reader(settings.screen, settings.llm),
    )
    web = await stack.enter_async_context(WebServer(settings.web, screens))
    if settings.screen.enabled and settings.web.public_url:
        try:
            await web.start()
        except SetupError as error:
            # Conversations work without the web server; people who ask for a link get the error.
            log.warning("web_not_listening", problem=error)
    return screens, WatchService(screens, web, participation)
