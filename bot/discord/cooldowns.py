"""Keeps people from using a command or button too often. Pure: times are monotonic seconds given by the caller."""

from __future__ import annotations

import math
from collections import OrderedDict, deque
from dataclasses import dataclass

from bot.texts.text import Text, counted

# Beyond this many people and commands the longest unused are forgotten: they may then use theirs again.
MOST_KEPT = 2_000


@dataclass(frozen=True, slots=True)
class Cooldown:
    """How often one person may use a command on one server: `uses` times in `per_s` seconds."""

    uses: int
    per_s: float


class Cooldowns:
    """When who used which command."""

    def __init__(self) -> None:
        self._used: OrderedDict[tuple[int, int, str], deque[float]] = OrderedDict()

    def use(self, guild_id: int, user_id: int, command: str, cooldown: Cooldown, *, now: float) -> int:
        """Count one use. Returns 0, or for how many seconds the person has to wait; then the use is not counted."""
        key = (guild_id, user_id, command)
        times = self._used.setdefault(key, deque())
        self._used.move_to_end(key)
        while len(self._used) > MOST_KEPT:
            self._used.popitem(last=False)
        while times and now - times[0] >= cooldown.per_s:
            times.popleft()
        if len(times) >= cooldown.uses:
            return math.ceil(times[0] + cooldown.per_s - now)
        times.append(now)
        return 0


def often(wait_s: int) -> Text:
    """Return what to say to somebody who has to wait for so many seconds."""
    return counted(
        wait_s, "Please wait {count} second, then try again.", "Please wait {count} seconds, then try again."
    )
