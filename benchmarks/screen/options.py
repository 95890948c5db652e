"""The options of the screen benchmark."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ScreenBenchOptions:
    """The options of one run. The defaults are a full run.

    `scenes`: the number of backgrounds for each transition. `readings`: screens to read. `events`: changes whose notes
    are awaited. `answers`: replies to measure without and with a share; 0 means none. `hours`: hours of sharing to
    simulate for the cost. `seed`: the same seed gives the same screens.
    """

    scenes: int = 12
    readings: int = 12
    events: int = 12
    answers: int = 15
    hours: int = 20
    seed: int = 1

    @classmethod
    def quick(cls) -> ScreenBenchOptions:
        """Return the options for a run of some seconds, which only checks that everything works."""
        return cls(scenes=2, readings=2, events=2, answers=0, hours=1)
