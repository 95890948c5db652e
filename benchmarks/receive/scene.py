"""One measurement: how many people speak, for how long, and how."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Scene:
    """How a number of people speak while it is measured for `seconds`.

    `warm_up_s`: they begin so long before. `pauses`: whether they pause again and again, at different moments;
    otherwise all speak all the time. `in_step`: whether the packets of all come at the same moment, every 20 ms;
    otherwise they lie evenly in the 20 ms.
    """

    speakers: int
    seconds: float
    warm_up_s: float
    pauses: bool = False
    in_step: bool = False

    @property
    def name(self) -> str:
        """The name of the figures."""
        return f"{self.speakers} speakers in step" if self.in_step else f"{self.speakers} speakers"
