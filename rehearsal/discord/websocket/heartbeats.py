"""Notices websockets whose client sends no heartbeats. Both gateways close them, as Discord does."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from rehearsal.discord.websocket.connection import GatewayConnection

# Discord says only that it closes a client which misses its heartbeats. Half an interval more allows for a slow way.
_ALLOWED_INTERVALS: Final = 1.5


class HeartbeatWatch:
    """Calls `on_silence` with each connection of which no heartbeat has come for one and a half intervals.

    `interval_s`: what the gateway's hello tells the clients. Use it only from the event loop's thread.

    *Ownership*: one timer for each open connection; `close` cancels them.
    """

    def __init__(self, interval_s: float, on_silence: Callable[[GatewayConnection], None]) -> None:
        self.interval_s = interval_s
        self._on_silence = on_silence
        self._timers: dict[GatewayConnection, asyncio.TimerHandle] = {}

    @property
    def interval_ms(self) -> int:
        """The interval as a hello has it."""
        return round(self.interval_s * 1000)

    def close(self) -> None:
        """Cancel every timer."""
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()

    def opened(self, connection: GatewayConnection) -> None:
        """Begin to wait for heartbeats of a connection."""
        loop = asyncio.get_running_loop()
        allowed_s = self.interval_s * _ALLOWED_INTERVALS
        self._timers[connection] = loop.call_later(allowed_s, self._silent, connection)

    def beat(self, connection: GatewayConnection) -> None:
        """Note a heartbeat."""
        if self.closed(connection):
            self.opened(connection)

    def closed(self, connection: GatewayConnection) -> bool:
        """Stop waiting for a connection. Return whether it was waited for."""
        timer = self._timers.pop(connection, None)
        if timer is None:
            return False
        timer.cancel()
        return True

    def _silent(self, connection: GatewayConnection) -> None:
        del self._timers[connection]
        self._on_silence(connection)
