"""What language models and the bot's voice are used for: an amount that can be added up. Pure."""

from __future__ import annotations

from dataclasses import astuple, dataclass


@dataclass(frozen=True, slots=True)
class Cost:
    """Calls of language models, tokens sent and received, seconds spoken."""

    calls: int = 0
    tokens: int = 0
    spoken_s: float = 0.0

    def __sub__(self, other: Cost) -> Cost:
        return Cost(self.calls - other.calls, self.tokens - other.tokens, self.spoken_s - other.spoken_s)

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.calls + other.calls, self.tokens + other.tokens, self.spoken_s + other.spoken_s)

    def reaches(self, ceiling: Cost) -> bool:
        """Return whether it is as much as one of the limits; 0: no limit."""
        return any(limit and amount >= limit for amount, limit in zip(astuple(self), astuple(ceiling), strict=True))


NOTHING = Cost()
