"""What a person can choose about the screen benchmark."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ScreenBenchOptions:
    """The choices of one run; the defaults are a whole one.

    `scenes`: backgrounds that every transition is tried on; `readings`: screens that are read; `events`: changes whose
    note is waited for; `answers`: answers of the bot that are timed alone and beside a share, 0 for none; `hours`:
    hours of sharing that are simulated for the cost. `seed`: the same makes the same.
    """

    scenes: int = 12
    readings: int = 12
    events: int = 12
    answers: int = 15
    hours: int = 20
    seed: int = 1

    @classmethod
    def quick(cls) -> ScreenBenchOptions:
        """Return a run of some seconds, to see that everything works."""
        return cls(scenes=2, readings=2, events=2, answers=0, hours=1)
