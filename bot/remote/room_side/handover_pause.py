"""Finds the moment at which a room may be handed over to another process: a pause in speech.

At first that is a real pause, in which nobody speaks and nothing is to be answered. Where people do not pause, the end
of a sentence has to do: silence is known a second earlier than that somebody has finished.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

import structlog

from bot.remote.room_side.sound_watch import pause_needed_s

if TYPE_CHECKING:
    from collections.abc import Callable

    from bot.clock import Clock

log = structlog.get_logger()

# A real pause: nobody has spoken and the bot has not answered for this long.
PAUSE_S: Final = 1.0
# From here on silence is enough, and less and less of it. A handover takes somewhat less than a second.
PATIENCE_S: Final = 6.0
WITHIN_S: Final = 20.0
_LOOK_EVERY_S: Final = 0.05


class SpeakingRoom(Protocol):
    """The parts of a room that a pause depends on."""

    def is_answering(self) -> bool:
        """Return whether the bot answers, or is about to."""

    def is_busy(self) -> bool:
        """Return whether somebody speaks, or the bot answers."""


def is_short_pause(quiet_s: float, *, waited_s: float) -> bool:
    """Return whether silence of `quiet_s` is enough after `waited_s` of waiting."""
    if waited_s < PATIENCE_S:
        return False
    return quiet_s >= pause_needed_s(waited_s - PATIENCE_S, most_s=PAUSE_S, within_s=WITHIN_S - PATIENCE_S)


async def until_pause(
    room: SpeakingRoom, quiet_s: Callable[[], float], clock: Clock, *, is_over: Callable[[], bool]
) -> None:
    """Wait for a pause in speech, `WITHIN_S` at most. `quiet_s`: for how long nobody has been heard, the bot included.
    `is_over`: the room has ended meanwhile.
    """
    now = begun_at = unbusy_since = clock.monotonic()
    while (waited_s := now - begun_at) < WITHIN_S and not is_over():
        if room.is_busy():
            unbusy_since = now
        elif now - unbusy_since >= PAUSE_S:
            return
        if not room.is_answering() and is_short_pause(quiet_s(), waited_s=waited_s):
            log.info("short_pause_in_speech", waited_s=round(waited_s, 1), pause_s=round(quiet_s(), 2))
            return
        await clock.sleep(_LOOK_EVERY_S)
        now = clock.monotonic()
    log.info("no_pause_in_speech", waited_s=round(waited_s, 1))
