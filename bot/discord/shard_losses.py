"""Which shards of this process have lost their connection to Discord, and since when."""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from bot.errors import BotError
from bot.health import DegradedPart
from bot.texts.text import Text
from voice.circuit_breaker import Outage

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from bot.shards import Shards

log = structlog.get_logger()

SHARD_AWAY = Text("If this goes on, check the network and status.discord.com. I reconnect by myself.")


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
