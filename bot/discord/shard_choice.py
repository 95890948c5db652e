"""Asks Discord before the start how many shards it recommends, and whether it lets that many connect now."""

from __future__ import annotations

from typing import TYPE_CHECKING

import aiohttp
import discord
import structlog
from pydantic import BaseModel, Field, ValidationError

from bot.discord.bot_token import COPY_AGAIN, require_token
from bot.discord.endpoint import connector, point_at
from bot.errors import SetupError
from bot.shards import MOST_SHARDS, whole

if TYPE_CHECKING:
    from bot.settings import DiscordSettings
    from bot.shards import Shards

log = structlog.get_logger()

ASK_S = 10.0
_REFUSED = 401


class _StartLimit(BaseModel):
    """How often the bot may connect. `reset_after`: in how many milliseconds `remaining` is `total` again."""

    total: int
    remaining: int
    reset_after: int


class _GatewayBot(BaseModel):
    """Discord's answer (reference, "Get Gateway Bot")."""

    shards: int = Field(ge=1, le=MOST_SHARDS)
    session_start_limit: _StartLimit


async def chosen_shards(settings: DiscordSettings, choice: Shards | None) -> Shards:
    """Return the shards to serve. `choice`: the operator's; None: all of as many as Discord recommends.

    A bot with one shard asks nothing. Raises `SetupError` if Discord cannot be asked, or lets no more shards connect.
    """
    if choice is not None and not choice.is_divided:
        return choice
    advice = await _ask(settings)
    shards = choice or whole(advice.shards)
    limit = advice.session_start_limit
    if limit.remaining < len(shards.ids):
        raise SetupError(
            f"Discord has {limit.remaining} of {limit.total} connections left for this bot, and this process needs "
            f"{len(shards.ids)}, one for each shard. Start it again in {max(1, round(limit.reset_after / 60_000))} min "
            "and find out what connected so often."
        )
    if shards.total < advice.shards:
        log.warning(
            "fewer_shards_than_recommended",
            shard_count=shards.total,
            recommended_count=advice.shards,
            remedy="Give all processes a higher total.",
        )
    return shards


async def _ask(settings: DiscordSettings) -> _GatewayBot:
    point_at(settings)
    token = require_token(settings)
    timeout = aiohttp.ClientTimeout(total=ASK_S)
    try:
        async with (
            aiohttp.ClientSession(connector=connector(settings), timeout=timeout) as session,
            session.get(
                f"{discord.http.Route.BASE}/gateway/bot", headers={"Authorization": f"Bot {token}"}
            ) as response,
        ):
            if response.status == _REFUSED:
                raise SetupError(f"Discord refused the bot's token. {COPY_AGAIN}")
            response.raise_for_status()
            return _GatewayBot.model_validate_json(await response.read())
    except (aiohttp.ClientError, TimeoutError, OSError, ValidationError) as error:
        raise SetupError(
            f"Discord did not say how many shards this bot needs ({type(error).__name__}). Check the network and "
            "status.discord.com, then start again."
        ) from error
