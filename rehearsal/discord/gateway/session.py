"""One bot's session on the main gateway: what it sees, and what is sent again after its websocket broke."""

from __future__ import annotations

import secrets
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rehearsal.discord.guild.intents import gets

if TYPE_CHECKING:
    import asyncio

    from rehearsal.discord.guild.payloads import Json
    from rehearsal.discord.websocket.connection import GatewayConnection

_DISPATCH = 0
_REPLAYED_EVENTS = 500
# A guild's id holds its time of creation above these bits (Discord's reference, "Sharding").
_SHARD_SHIFT = 22


@dataclass(slots=True, eq=False)
class GatewaySession:
    """One bot's session. Between a disconnect and a resume it has no websocket."""

    user_id: int
    intents: int
    connection: GatewayConnection | None
    shard: tuple[int, int] = (0, 1)
    id: str = field(default_factory=lambda: secrets.token_hex(16))
    sequence: int = 0
    expiry: asyncio.TimerHandle | None = None
    _replay: deque[Json] = field(default_factory=lambda: deque(maxlen=_REPLAYED_EVENTS))

    def stop_expiry(self) -> None:
        """Live on: its websocket is back, or it is over already."""
        if self.expiry is not None:
            self.expiry.cancel()
            self.expiry = None

    def sees(self, guild_id: int) -> bool:
        """Return whether the guild belongs to the session's shard."""
        number, count = self.shard
        return (guild_id >> _SHARD_SHIFT) % count == number

    def dispatch(self, event: str, data: object) -> None:
        """Send an event if the bot's intents ask for it, and keep it so that it can be sent again after a RESUME."""
        if not gets(event, data, user_id=self.user_id, intents=self.intents):
            return
        self.sequence += 1
        message = {"op": _DISPATCH, "s": self.sequence, "t": event, "d": data}
        self._replay.append(message)
        if self.connection is not None:
            self.connection.send_json(message)

    def resume(self, connection: GatewayConnection, after: int) -> None:
        """Continue on a new websocket, and resend the events that came after the sequence number `after`."""
        self.connection = connection
        for message in self._replay:
            if message["s"] > after:
                connection.send_json(message)
