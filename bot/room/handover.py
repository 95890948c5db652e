"""Finds the moment at which a room may be left to another process: a pause in speech. Pure but for `until_pause`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from bot.clock import Clock

# At first a real pause is needed, and less and less of one as time passes; then the room is left in any case.
PAUSE_S: Final = 1.0
WITHIN_S: Final = 10.0
_LOOK_EVERY_S: Final = 0.05


def pause_needed_s(waited_s: float) -> float:
    """Return how long nobody must have spoken, the bot included, after `waited_s` of waiting."""
    return PAUSE_S * max(0.0, 1.0 - waited_s / WITHIN_S)


async def until_pause(is_busy: Callable[[], bool], clock: Clock) -> None:
    """Wait for a pause, `WITHIN_S` at most. `is_busy`: returns whether somebody speaks, or the bot answers."""
    now = begun_at = busy_at = clock.monotonic()
    while now - begun_at < WITHIN_S:
        if is_busy():
            busy_at = now
        elif now - busy_at >= pause_needed_s(now - begun_at):
            return
        await clock.sleep(_LOOK_EVERY_S)
        now = clock.monotonic()
