"""Tells the gateway process every few seconds what this process, which runs rooms, measures itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from bot.remote.messages.figure_messages import FiguresTold

if TYPE_CHECKING:
    from collections.abc import Callable

    from bot.clock import Clock
    from bot.monitoring.process_figures import Series
    from bot.remote.link.gateway_link import GatewayLink

# Prometheus asks every 15 seconds.
TELL_EVERY_S: Final = 10.0


class ProcessFigures:
    """Tells the figures of the process, by the link of whichever of its rooms comes first. `read`: returns them."""

    def __init__(self, read: Callable[[], tuple[Series, ...]], clock: Clock) -> None:
        self._read = read
        self._clock = clock
        self._told_at = float("-inf")

    def tell(self, link: GatewayLink, *, ending: bool) -> None:
        """Tell them if it is time again. `ending`: the link's room has ended, and may have been the last one."""
        now = self._clock.monotonic()
        if link.is_open and (ending or now - self._told_at >= TELL_EVERY_S):
            self._told_at = now
            link.tell(FiguresTold(self._read()))
