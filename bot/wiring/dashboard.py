"""Opens the dashboard: live rooms, the history behind it, and the file with the login link."""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from bot.dashboard.discord_login import DiscordLogin
from bot.dashboard.live import LiveRooms
from bot.dashboard.service import DashboardService
from bot.private_files import write_private_text
from bot.shards import ONLY_SHARD

if TYPE_CHECKING:
    from contextlib import AsyncExitStack
    from pathlib import Path

    from bot.clock import Clock
    from bot.participation.all_guilds import GuildParticipations
    from bot.settings import DiscordSettings
    from bot.shards import Shards
    from bot.store.sessions import Sessions
    from bot.wiring.settings import BotSettings

log = structlog.get_logger()

# In the data folder: the login link that works now. Each works once, and a bot may run for months.
LINK_FILE = "dashboard-link"


async def open_dashboard(
    stack: AsyncExitStack,
    settings: BotSettings,
    sessions: Sessions,
    participation: GuildParticipations,
    clock: Clock,
    shards: Shards = ONLY_SHARD,
) -> DashboardService:
    """Open the dashboard on `stack`. `app` gives it the stored sessions later."""
    live = LiveRooms(clock)
    await stack.enter_async_context(live.running())
    login = _discord_login(settings.discord, clock)
    return DashboardService(live, sessions, participation, clock=clock, discord_login=login, shards=shards)


def _discord_login(settings: DiscordSettings, clock: Clock) -> DiscordLogin | None:
    """Return the logins with Discord, or None without a client secret."""
    secret = settings.client_secret
    if secret is None or not secret.get_secret_value().strip():
        return None
    return DiscordLogin(secret, api_base=settings.api_base, monotonic=clock.monotonic)


def write_link(folder: Path, link: str) -> None:
    """Write the login link where only the user who runs the bot can read it."""
    try:
        write_private_text(folder / LINK_FILE, f"{link}\n")
    except OSError as error:
        log.warning("dashboard_link_not_written", error_class=type(error).__name__)
