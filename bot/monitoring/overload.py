"""Decides whether the process has too much to do, from how late its event loop is and how long speech waits for the
recogniser. Pure.
"""

from __future__ import annotations

from statistics import median
from typing import Final

from bot.health import FaultKind, HealthFault
from bot.texts.text import Text

# A frame is 20 ms long, and playback keeps some ahead.
LATE_S: Final = 0.1
# People notice an answer that is so much later; until then they take it for thinking.
WAITED_S: Final = 1.5
# The last minute, with a look every `MEASURE_LAG_EVERY_S`. One busy look is a model that loads.
LOOKS: Final = 12
BUSY_LOOKS: Final = 3

OVERLOADED: Final = HealthFault(
    FaultKind.OVERLOAD,
    Text("I have too much to do. I hear late what you say, and my answers come late."),
    "Give me fewer rooms (room.max_rooms), a faster machine or another recogniser.",
    blocks=False,
)


class Overload:
    """Whether the process is overloaded: from the third busy look within a minute until a minute without one."""

    def __init__(self) -> None:
        self._waits: list[float] = []
        self._looks: list[bool] = []
        self._is_overloaded = False

    def on_waited(self, seconds: float) -> None:
        """Note how long an utterance has waited for the recogniser since its end was certain."""
        self._waits.append(seconds)

    def on_lag(self, seconds: float) -> None:
        """Note how late the event loop was at this look."""
        is_busy = seconds >= LATE_S or median(self._waits or [0.0]) >= WAITED_S
        self._looks = [*self._looks, is_busy][-LOOKS:]
        self._waits.clear()
        self._is_overloaded = sum(self._looks) >= (1 if self._is_overloaded else BUSY_LOOKS)

    def faults(self) -> list[HealthFault]:
        """Return the overload, if there is one."""
        return [OVERLOADED] if self._is_overloaded else []
