"""The connections of a large bot: how many shards Discord recommends and lets connect now, asked before the start, and
which of them have lost their connection since.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import aiohttp
import discord
import structlog
from pydantic import BaseModel, Field, ValidationError

from bot.discord.bot_token import COPY_AGAIN, require_token
from bot.discord.endpoint import connector, point_at
from bot.errors import BotError, SetupError
from bot.health import DegradedPart
from bot.shards import MOST_SHARDS, whole
from bot.texts.text import Text
from voice.circuit_breaker import Outage

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from bot.settings import DiscordSettings
    from bot.shards import Shards

log = structlog.get_logger()

ASK_S = 10.0
_REFUSED = 401
SHARD_AWAY = Text("If this goes on, check the network and status.discord.com. I reconnect by myself.")


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


class ShardLosses:
    """The connections of `shards`, which all count as there at first. `monotonic`: returns seconds."""

    def __init__(self, shards: Shards, *, monotonic: Callable[[], float]) -> None:
        self.shards = shards
        self._monotonic = monotonic
        self._since: dict[int, float] = {}

    @property
    def away(self) -> Mapping[int, float]:
        """Return the shards without a connection, with the monotonic seconds since when."""
        return self._since

    def lost(self, shard: int) -> None:
        """Note that a shard has no connection. A second failure is the same loss."""
        if shard not in self._since:
            self._since[shard] = self._monotonic()
            if self.shards.is_divided:
                log.warning("shard_disconnected", shard=shard, shard_count=self.shards.total)

    def back(self, shard: int) -> None:
        """Note that a shard has a connection again."""
        if self._since.pop(shard, None) is not None and self.shards.is_divided:
            log.info("shard_connected", shard=shard, shard_count=self.shards.total)

    def degraded_parts(self) -> list[DegradedPart]:
        """Return what /status says. Where there is one shard, nobody gets an answer while it is away."""
        if not self.shards.is_divided:
            return []
        instead = Text("its servers do not reach me; what I hear there goes on")
        return [
            DegradedPart(
                Text(
                    "My connection to Discord for shard {shard} of {total}", shard=str(shard), total=self.shards.total
                ),
                instead,
                Outage(since, None, BotError(SHARD_AWAY)),
            )
            for shard, since in sorted(self._since.items())
        ]
