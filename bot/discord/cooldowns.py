"""Keeps people from using a command or button too often. Pure: times are monotonic seconds given by the caller."""

from __future__ import annotations

import math
from collections import OrderedDict
from typing import TYPE_CHECKING

from bot.texts.text import Text, counted

if TYPE_CHECKING:
    from discord.app_commands import Cooldown

# Beyond this many people and commands the longest unused are forgotten: they may then use theirs again.
MOST_KEPT = 2_000


class Cooldowns:
    """When who used which command."""

    def __init__(self) -> None:
        self._used: OrderedDict[tuple[int, int, str], Cooldown] = OrderedDict()

    def use(self, guild_id: int, user_id: int, command: str, cooldown: Cooldown, *, now: float) -> int:
        """Count one use. Returns 0, or for how many seconds the person has to wait. `cooldown`: how often one person
        may use the command on one server.
        """
        key = (guild_id, user_id, command)
        used = self._used.setdefault(key, cooldown.copy())
        self._used.move_to_end(key)
        while len(self._used) > MOST_KEPT:
            self._used.popitem(last=False)
        return math.ceil(used.update_rate_limit(now) or 0)


def often(wait_s: int) -> Text:
    """Return what to say to somebody who has to wait for so many seconds."""
    return counted(
        wait_s, "Please wait {count} second, then try again.", "Please wait {count} seconds, then try again."
    )
