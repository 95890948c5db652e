"""What language models and the bot's voice are used for, and what that costs: an amount that can be added up. Pure."""

from __future__ import annotations

from dataclasses import astuple, dataclass


@dataclass(frozen=True, slots=True)
class Cost:
    """Calls of language models, tokens sent and received, seconds spoken, US dollars of tokens with a known price."""

    calls: int = 0
    tokens: int = 0
    spoken_s: float = 0.0
    dollars: float = 0.0

    def __sub__(self, other: Cost) -> Cost:
        return Cost(*(own - theirs for own, theirs in zip(astuple(self), astuple(other), strict=True)))

    def __add__(self, other: Cost) -> Cost:
        return Cost(*(own + theirs for own, theirs in zip(astuple(self), astuple(other), strict=True)))

    @property
    def dearness(self) -> tuple[float, ...]:
        """Return what orders costs: money, if a price is known, then tokens, then speech."""
        return self.dollars, self.tokens, self.spoken_s

    def reaches(self, ceiling: Cost) -> bool:
        """Return whether it is as much as one of the limits; 0: no limit."""
        return any(limit and amount >= limit for amount, limit in zip(astuple(self), astuple(ceiling), strict=True))


NOTHING = Cost()
