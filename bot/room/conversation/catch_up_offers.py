"""Decides who is offered, on coming back, what was said meanwhile: once in a session, and only after some time.

Pure: the room tells it of comings and goings.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from bot.channel.port import MembershipChange

# Who fetches a drink or changes a device has missed little.
LEAST_AWAY_S: Final = 300.0
# Turns since they left. Fewer are read faster than a recap.
LEAST_TURNS: Final = 5


@dataclass(frozen=True, slots=True)
class _Departure:
    at: float
    total_turns: int


class CatchUpOffers:
    """The offers of one session. Times are seconds of any one clock. Not thread-safe."""

    def __init__(self) -> None:
        self._away: dict[int, _Departure] = {}
        self._offered: set[int] = set()

    def handle(self, change: MembershipChange, *, total_turns: int, now: float) -> float | None:
        """Take a change. Returns for how many seconds the person was away if they are to be offered it, else None.

        `total_turns`: how many the session has had.
        """
        person = change.person
        if person.is_bot:
            return None
        if not change.joined:
            self._away[person.id] = _Departure(now, total_turns)
            return None
        left = self._away.pop(person.id, None)
        if left is None or person.id in self._offered:
            return None
        if now - left.at < LEAST_AWAY_S or total_turns - left.total_turns < LEAST_TURNS:
            return None
        self._offered.add(person.id)
        return now - left.at
