"""Ends the process when only a restart helps, so that whatever keeps it starts it again: systemd, Docker, Kubernetes or
Ray. Docker restarts nothing that is merely unhealthy.
"""

from __future__ import annotations

import faulthandler
from typing import TYPE_CHECKING, Final

from bot.errors import BotError
from bot.texts.text import joined

if TYPE_CHECKING:
    from bot.clock import Clock
    from bot.health import Health

LOOK_EVERY_S: Final = 5.0
# The descriptor of the terminal: a logger or a test may have put something else before `sys.stderr`.
STDERR: Final = 2
# An event loop that stands still so long does not come back. Slow disks and a machine that swaps take less.
HUNG_S: Final = 120.0
# A look at the database or a shutdown may be under way.
DEAD_LOOKS: Final = 6


class DeadError(BotError):
    """Only a restart helps: the process has ended itself. The message is the fault."""


async def watch(health: Health, clock: Clock, *, hung_s: float = HUNG_S) -> None:
    """Watch the process. Raises `DeadError` when a fault that needs a restart has been there for half a minute. If the
    event loop hangs, the process ends at once, and the terminal shows where. *Cancellation*: ends the watch.
    """
    looks = 0
    try:
        while looks < DEAD_LOOKS:
            faulthandler.dump_traceback_later(hung_s, exit=True, file=STDERR)
            await clock.sleep(LOOK_EVERY_S)
            dead = [fault for fault in health.faults() if fault.needs_restart]
            looks = looks + 1 if dead else 0
    finally:
        faulthandler.cancel_dump_traceback_later()
    raise DeadError(joined((dead[0].what, dead[0].remedy)))
