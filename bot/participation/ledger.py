"""What a server's answers have cost in the last hour, and whether that is more than they may. Pure."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bot.participation.settings import ParticipationSettings

HOUR_S = 3_600.0


@dataclass(frozen=True, slots=True)
class Spent:
    """A cost: answers asked of the model, tokens sent and received, seconds spoken."""

    calls: int = 0
    tokens: int = 0
    spoken_s: float = 0.0

    def __add__(self, other: Spent) -> Spent:
        return Spent(self.calls + other.calls, self.tokens + other.tokens, self.spoken_s + other.spoken_s)


@dataclass(frozen=True, slots=True)
class Ceiling:
    """The most that an hour may cost; 0 means that there is no limit."""

    calls: int = 0
    tokens: int = 0
    spoken_s: float = 0.0

    @classmethod
    def of(cls, settings: ParticipationSettings) -> Ceiling:
        """Return the ceiling that the settings name."""
        return cls(settings.max_calls_per_hour, settings.max_tokens_per_hour, settings.max_spoken_s_per_hour)

    def reached(self, spent: Spent) -> bool:
        """Return whether nothing more may be spent."""
        return any(
            limit and amount >= limit
            for amount, limit in (
                (spent.calls, self.calls),
                (spent.tokens, self.tokens),
                (spent.spoken_s, self.spoken_s),
            )
        )


class Ledger:
    """One server's costs. Times are monotonic seconds and never go back. Not thread-safe."""

    def __init__(self, ceiling: Ceiling) -> None:
        self.ceiling = ceiling
        self._entries: deque[tuple[float, Spent]] = deque()

    def add(self, spent: Spent, *, now: float) -> None:
        """Take note of a cost."""
        self._forget(now)
        self._entries.append((now, spent))

    def spent(self, now: float) -> Spent:
        """Return what the last hour cost."""
        self._forget(now)
        return sum((spent for _, spent in self._entries), Spent())

    def over(self, now: float) -> bool:
        """Return whether the ceiling is reached."""
        return self.ceiling.reached(self.spent(now))

    def free_in_s(self, now: float) -> float:
        """Return in how many seconds it is under the ceiling again if nothing is added; 0 if it is now."""
        left = self.spent(now)
        if not self.ceiling.reached(left):
            return 0.0
        for at, entry in self._entries:
            left = Spent(left.calls - entry.calls, left.tokens - entry.tokens, left.spoken_s - entry.spoken_s)
            if not self.ceiling.reached(left):
                return at + HOUR_S - now
        return HOUR_S

    def _forget(self, now: float) -> None:
        while self._entries and now - self._entries[0][0] >= HOUR_S:
            self._entries.popleft()
